"""Rank 3 writes to FOLDER/disk/file until a disk that is frozen holds it; the others wait for FOLDER/finish.

FOLDER/up-RANK when it runs.
"""

import os
import pathlib
import sys
import time

folder, disk = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
rank = os.environ["RANK"]


def write():
    with open(disk / "file", "ab", buffering=0) as file:
        while not (folder / "finish").exists():
            file.write(b"x" * 100)
            time.sleep(0.01)


(folder / f"up-{rank}").touch()
if rank == "3":
    write()
while not (folder / "finish").exists():
    time.sleep(0.05)
