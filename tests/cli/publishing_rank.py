"""A rank that saves without end: `publishing_rank.py FOLDER WAY`.

Each version of `$TAAS_OUTPUT_DIR/model-RANK` is PIECES times its own number, written piece by piece; `kept-RANK` is the
same, written under a temporary name and renamed; `once-N-RANK` is written once. In FOLDER appear `ready-RANK`, with the
process id, and `kept-RANK`: the newest version that was renamed.

WAY is `default` (does nothing about signals), `saves` (its handler saves `final-RANK` and exits with 0), `raises` (the
handler raises, and nothing catches it), `exception` (raises by itself at a random moment), `exit` (likewise
sys.exit(3)) or `ends` (returns after some saves).
"""

import os
import pathlib
import random
import signal
import sys
import time

PIECES = 24
PIECE_BYTES = 4096

folder, way = pathlib.Path(sys.argv[1]), sys.argv[2]
rank = os.environ["RANK"]
output = pathlib.Path(os.environ["TAAS_OUTPUT_DIR"])
first_generation = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"


def write(path: pathlib.Path, version: int):
    with open(path, "wb") as file:
        for _ in range(PIECES):
            file.write(version.to_bytes(8, "little") * (PIECE_BYTES // 8))
            file.flush()
            time.sleep(0.001)


def note(name: str, text: str):
    path = folder / f"{name}-{rank}"
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def save_and_exit(*_):
    write(output / f"final-{rank}", 1)
    note("final", "1")
    sys.exit(0)


def fail(*_):
    if way == "exit":
        sys.exit(3)
    raise RuntimeError("the loss is no number")


if way == "saves":
    signal.signal(signal.SIGTERM, save_and_exit)
    signal.signal(signal.SIGINT, save_and_exit)
if way == "raises":
    signal.signal(signal.SIGTERM, fail)
    signal.signal(signal.SIGINT, fail)
if way in ("exception", "exit") and rank == "0":
    signal.signal(signal.SIGALRM, fail)
    if first_generation:
        signal.setitimer(signal.ITIMER_REAL, 0.2 + random.random())
base = 0 if first_generation else 1 << 32
for version in range(base + 1, base + 1000000):
    write(output / f"model-{rank}", version)
    write(output / f"kept-{rank}.tmp", version)
    os.replace(output / f"kept-{rank}.tmp", output / f"kept-{rank}")
    note("kept", str(version))
    if version % 4 == 0:
        write(output / f"once-{version}-{rank}", version)
    if version == base + 2:
        note("ready", str(os.getpid()))
    if way == "ends" and version == base + 30 or not first_generation and version == base + 4:
        break
