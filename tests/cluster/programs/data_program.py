#!/usr/bin/env python3
"""A rank, or a data worker, by TAAS_ROLE; no Python program to taas-run, which runs it as it is.

A worker answers each connection with its place and its host. A rank writes what it learned of the workers to
FOLDER/seen-RANK, again whenever that has changed: host and place of each that its plan names, null for one that has
left.
"""

import json
import os
import pathlib
import socket
import sys
import threading
import time

folder = pathlib.Path(sys.argv[1])


def work():
    about = json.dumps([socket.gethostname(), int(os.environ["TAAS_DATA_WORKER"])]).encode()
    if os.environ.get("PREPARE") == "when told":
        wait_to_be_told()
    if os.environ.get("PREPARE") == "fails":
        sys.exit("no such loader")
    if "PREPARE" in os.environ:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            event = {
                "kind": "prepared",
                "worker": int(os.environ["TAAS_DATA_WORKER"]),
                "batches": 3,
                "bytes": 10,
                "done": True,
            }
            to.sendto(json.dumps(event).encode(), os.environ["TAAS_EVENTS"])
    for number in os.environ["TAAS_DATA_LISTEN"].split(","):
        threading.Thread(target=answer, args=(socket.socket(fileno=int(number)), about), daemon=True).start()
    threading.Event().wait()


def wait_to_be_told():
    (folder / f"preparing-{os.environ['TAAS_DATA_WORKER']}").touch()
    while not (folder / "prepare").exists():
        time.sleep(0.02)


def answer(listener, about):
    while True:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(about)


def ask(worker):
    if not worker["address"]:
        return None
    try:
        with socket.create_connection((worker["address"], worker["port"]), timeout=5) as to:
            return json.loads(to.recv(1000))
    except (OSError, ValueError):
        return "unreachable"


def see():
    if "RANK_EXITS" in os.environ:
        sys.exit(int(os.environ["RANK_EXITS"]))
    place = folder / f"seen-{os.environ['RANK']}"
    while not (folder / "finish").exists():
        plan = json.loads(pathlib.Path(os.environ["TAAS_DATA_PLAN"]).read_text())
        fresh = place.with_suffix(".new")
        fresh.write_text(json.dumps([ask(worker) for worker in plan["workers"]]))
        fresh.rename(place)
        time.sleep(0.02)


work() if os.environ["TAAS_ROLE"] == "data-worker" else see()
