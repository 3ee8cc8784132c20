"""A rank that saves when it is told to stop, in one of the usual ways: `stopping_rank.py FOLDER WAY SECONDS WORKERS`.

WAY is `handler` (saves within the handler), `flag` (the handler sets one, and the next step saves), `raises` (the
handler raises, and what catches it saves) or `polls` (ignores the signal and looks for the file of
TAAS_STOP_REQUESTED). With WORKERS its steps take batches from a DataLoader with so many. In FOLDER appear `ready-RANK`
(with the process id), `begun-RANK` and `saved-RANK`; a save is written to `$TAAS_OUTPUT_DIR/save-RANK`, piece by piece,
and does not end as long as there is a file `hold` in FOLDER.
"""

import os
import pathlib
import signal
import sys
import time

PIECES = 20
PIECE = b"0123456789abcdef" * 256
STOPS = (signal.SIGTERM, signal.SIGINT)

folder, way, seconds, workers = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
rank = os.environ["RANK"]
asked = False


class Stopped(Exception):
    pass


def note(name: str, text: str = ""):
    """Whole or not at all."""
    path = folder / f"{name}-{rank}"
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def save():
    note("begun")
    with open(pathlib.Path(os.environ["TAAS_OUTPUT_DIR"], f"save-{rank}"), "wb") as file:
        for _ in range(PIECES):
            file.write(PIECE)
            file.flush()
            time.sleep(seconds / PIECES)
        while (folder / "hold").exists():
            time.sleep(0.01)
    note("saved")
    sys.stdout.flush()
    os._exit(0)


def on_stop(*_):
    global asked
    if way == "handler":
        save()
    if way == "raises":
        raise Stopped
    asked = True


def batches():
    if workers == 0:
        while True:
            time.sleep(0.01)
            yield None
    import torch.utils.data

    class Endless(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 40

        def __getitem__(self, index):
            time.sleep(0.002)
            return index

    sequence = range(1 << 40)
    yield from torch.utils.data.DataLoader(Endless(), batch_size=4, num_workers=workers, sampler=sequence)


def train():
    for step, _ in enumerate(batches()):
        if step == 1:
            note("ready", str(os.getpid()))
        if way == "polls" and os.path.exists(os.environ["TAAS_STOP_REQUESTED"]):
            save()
        if asked:
            save()


for number in STOPS:
    signal.signal(number, signal.SIG_IGN if way == "polls" else on_stop)
try:
    train()
except Stopped:
    save()
