"""A data worker without torch. It answers each connection with its place and its host.

With PREPARE it says that it has prepared its part: at once, when there is a file FOLDER/prepare ("when told"), or never
("fails").
"""

import json
import os
import pathlib
import socket
import sys
import threading
import time

number = int(os.environ["TAAS_DATA_WORKER"])


def prepare(how):
    folder = pathlib.Path(os.environ["FOLDER"])
    if how == "fails":
        sys.exit("no such loader")
    if how == "when told":
        (folder / f"preparing-{number}").touch()
        while not (folder / "prepare").exists():
            time.sleep(0.02)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        event = {"kind": "prepared", "worker": number, "batches": 3, "bytes": 10, "done": True}
        to.sendto(json.dumps(event).encode(), os.environ["TAAS_EVENTS"])


def answer(listener):
    about = json.dumps([socket.gethostname(), number]).encode()
    while True:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(about)


if "PREPARE" in os.environ:
    prepare(os.environ["PREPARE"])
for descriptor in os.environ["TAAS_DATA_LISTEN"].split(","):
    threading.Thread(target=answer, args=(socket.socket(fileno=int(descriptor)),), daemon=True).start()
threading.Event().wait()
