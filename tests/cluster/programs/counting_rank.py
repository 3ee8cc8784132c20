"""Counts the requests to write a checkpoint, and saves when it is told to stop, by a handler that raises.

FOLDER/started-RANK when it runs; FOLDER/told-RANK at the first SIGUSR2, which odd ranks do not handle;
FOLDER/asked-RANK when the file of TAAS_STOP_REQUESTED appeared; FOLDER/counted-RANK-N at SIGTERM, after N of them;
FOLDER/saved-RANK when nothing has broken off the second that a save takes.
"""

import os
import pathlib
import signal
import sys
import time

folder, rank = pathlib.Path(sys.argv[1]), os.environ["RANK"]
count = 0


def note(*words):
    (folder / "-".join([words[0], rank, *words[1:]])).touch()


def count_one(*_):
    global count
    count += 1
    note("told")


def stop(*_):
    raise SystemExit


if int(rank) % 2 == 0:
    signal.signal(signal.SIGUSR2, count_one)
signal.signal(signal.SIGTERM, stop)
try:
    note("started")
    while not os.path.exists(os.environ["TAAS_STOP_REQUESTED"]):
        time.sleep(0.02)
    note("asked")
    while True:
        time.sleep(0.02)
finally:
    note("counted", str(count))
    time.sleep(1)
    note("saved")
