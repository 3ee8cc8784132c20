"""Trains for ever, and writes checkpoints when it is told that the end is near.

FOLDER/started-COUNT-RANK when it runs; FOLDER/saved-COUNT-RANK-SIGNAL once it has saved for USR1, USR2, TERM or INT
(then it leaves with 128 and the signal's number); FOLDER/asked-COUNT-RANK when the file of TAAS_STOP_REQUESTED
appeared. COUNT is TORCHELASTIC_RESTART_COUNT; with `until=N` the start with that count has done its work and leaves
with 0.
"""

import os
import pathlib
import signal
import sys
import time

folder = pathlib.Path(sys.argv[1])
count, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
last = next((word.split("=")[1] for word in sys.argv if word.startswith("until=")), None)


def note(*words):
    (folder / "-".join([words[0], count, rank, *words[1:]])).touch()


def save(number, _frame):
    name = signal.Signals(number).name.removeprefix("SIG")
    note("saved", name)
    if name in ("TERM", "INT"):
        sys.exit(128 + number)


for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT):
    signal.signal(number, save)
note("started")
if count == last:
    sys.exit(0)
request = os.environ.get("TAAS_STOP_REQUESTED")
while True:
    if request and os.path.exists(request):
        note("asked")
    time.sleep(0.02)
