"""A rank that writes what it learned of the data workers to FOLDER/seen-RANK, again whenever that has changed: host and
place of each that its plan names, null for one that has left.
"""

import json
import os
import pathlib
import socket
import sys
import time

folder = pathlib.Path(os.environ["FOLDER"])


def ask(worker):
    if not worker["address"]:
        return None
    try:
        with socket.create_connection((worker["address"], worker["port"]), timeout=5) as to:
            return json.loads(to.recv(1000))
    except (OSError, ValueError):
        return "unreachable"


if "RANK_EXITS" in os.environ:
    sys.exit(int(os.environ["RANK_EXITS"]))
place = folder / f"seen-{os.environ['RANK']}"
while not (folder / "finish").exists():
    plan = json.loads(pathlib.Path(os.environ["TAAS_DATA_PLAN"]).read_text())
    fresh = place.with_suffix(".new")
    fresh.write_text(json.dumps([ask(worker) for worker in plan["workers"]]))
    fresh.rename(place)
    time.sleep(0.02)
