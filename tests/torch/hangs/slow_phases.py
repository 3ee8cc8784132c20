"""Programs of two ranks in which rank 0 takes a minute, each in a way that is no hang: python slow_phases.py KIND FOLDER."""

import ctypes
import gc
import multiprocessing
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

SECONDS = float(os.environ.get("SLOW_SECONDS", "35"))
kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
end = time.monotonic() + SECONDS


def on() -> bool:
    return time.monotonic() < end


def compute(_=None):
    while on():
        sum(range(10000))


class Slow(Dataset):
    """Each sample takes long, as from storage that is far away."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        time.sleep(SECONDS / 3)
        return torch.ones(1)


def trickle(server):
    connection, _ = server.accept()
    while on():
        connection.send(b"x" * 1000)
        time.sleep(0.1)
    connection.close()


def send(connection):
    while on():
        connection.sendall(bytes(1 << 20))
    connection.close()


def drain(connection):
    while connection.recv(65536):
        time.sleep(0.1)


def slow():
    if kind == "save":
        with open(folder / "checkpoint", "wb", buffering=0) as file:
            while on():
                file.write(bytes(1 << 20))
                file.seek(0)
                time.sleep(0.05)
    if kind == "evaluation":
        compute()
    if kind == "compilation":
        subprocess.run([sys.executable, "-c", f"import time\nend = time.monotonic() + {SECONDS}\nwhile time.monotonic() < end: pass"])
    if kind == "download":
        server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=trickle, args=[server], daemon=True).start()
        with socket.create_connection(server.getsockname()) as source:
            while source.recv(65536):
                pass
    if kind == "upload":
        here, there = socket.socketpair()
        threading.Thread(target=drain, args=[there], daemon=True).start()
        sender = threading.Thread(target=send, args=[here])
        sender.start()
        sender.join()
    if kind == "polling":
        while on():
            (folder / "done").exists()
            time.sleep(1)
    if kind == "tokenization":
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(compute, range(2))
    if kind == "debugger":
        threading.Timer(SECONDS, os.kill, [os.getpid(), signal.SIGUSR1]).start()
        signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
        breakpoint()
    if kind == "data":
        for _ in DataLoader(Slow(), num_workers=1):
            pass
    if kind == "collection of garbage":
        kept = [[index] for index in range(300000)]
        while on():
            gc.collect()
        del kept
    if kind == "sleep":
        time.sleep(SECONDS)
    if kind == "a C call":
        while on():
            ctypes.CDLL(None).qsort((ctypes.c_int * 1000000)(), 1000000, 4, COMPARE)


COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: 0)

dist.init_process_group("gloo")
if kind == "stragglers":
    while on():
        if dist.get_rank() == 0:
            time.sleep(6)
        dist.all_reduce(torch.ones(4))
        stop = torch.tensor([0.0 if on() else 1.0])
        dist.broadcast(stop, 0)
        if stop.item():
            break
elif kind == "large collectives":
    tensor = torch.ones(1 << 22)
    for _ in range(40):
        dist.all_reduce(tensor)
elif dist.get_rank() == 0:
    slow()
dist.all_reduce(torch.ones(4))
