"""A stand-in for `taas.worker`: says who it is in $SEEN, answers connections with that, and does what $WORKER says.

(nothing)        stays
fail             prints two lines to stderr and exits with 1
prepare          reports that it has prepared two batches, when $SEEN/go is there
write:PATH       tries to write there, and says in "refused" why it could not
"""

import json
import os
import pathlib
import socket
import sys
import threading
import time


def report(**event):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.sendto(json.dumps(event).encode(), os.environ["TAAS_EVENTS"])


def identity():
    names = [
        name for name in os.environ if name.startswith("TAAS_") or name in ("PYTHONPATH", "RANK", "OMP_NUM_THREADS")
    ]
    opened = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
    return {
        "pid": os.getpid(),
        "group": os.getpgid(0),
        "argv": sys.argv,
        "open": opened,
        "environment": {name: os.environ[name] for name in names},
    }


def serve(listener, about):
    while True:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(json.dumps(about).encode())


def refusal_to_write(path):
    try:
        open(path, "w").close()
    except OSError as error:
        return str(error)
    return ""


def run():
    seen = pathlib.Path(os.environ["SEEN"])
    worker = int(os.environ["TAAS_DATA_WORKER"])
    wish = os.environ.get("WORKER", "")
    if wish == "fail":
        print("a first line", file=sys.stderr)
        print("ModuleNotFoundError: No module named 'nothing'", file=sys.stderr)
        sys.exit(1)
    about = identity()
    if wish.startswith("write:"):
        about["refused"] = refusal_to_write(wish.removeprefix("write:"))
    for number in os.environ["TAAS_DATA_LISTEN"].split(","):
        listener = socket.socket(fileno=int(number))
        threading.Thread(target=serve, args=(listener, about), daemon=True).start()
    fresh = seen / f"worker-{worker}.new"
    fresh.write_text(json.dumps(about))
    fresh.rename(seen / f"worker-{worker}")
    if wish == "prepare":
        while not (seen / "go").exists():
            time.sleep(0.002)
        report(kind="prepared", worker=worker, batches=2, bytes=1000, done=True)
    threading.Event().wait()
