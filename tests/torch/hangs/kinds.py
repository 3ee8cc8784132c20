"""Programs of four ranks of which rank 2 keeps the others waiting, each in its own way: python kinds.py KIND.

A comment `# <kind>` marks the line that the launcher has to name.
"""

import asyncio
import atexit
import ctypes
import datetime
import fcntl
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

LONG = 3000
kind = sys.argv[1]
folder = sys.argv[2]


def join():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=LONG))


def step():
    dist.all_reduce(torch.ones(4))


class Blocked(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 3:
            never().acquire()  # worker
        return torch.ones(2)


def never():
    lock = threading.Lock()
    lock.acquire()
    return lock


def in_child(_):
    time.sleep(LONG)  # pool


def odd():
    """What rank 2 does, and no other."""
    if kind == "lock":
        never().acquire()  # lock
    if kind == "rlock":
        held = threading.RLock()
        taken = threading.Event()
        threading.Thread(target=lambda: (held.acquire(), taken.set(), time.sleep(LONG)), daemon=True).start()
        taken.wait()
        with held:  # rlock
            pass
    if kind == "sleep":
        time.sleep(LONG)  # sleep
    if kind == "loop":
        while True:  # loop
            pass  # loop
    if kind == "gil":
        ctypes.PyDLL(None).sleep(LONG)  # gil
    if kind == "gil of a thread":
        threading.Thread(target=hold_gil, daemon=True).start()
        while True:
            time.sleep(0.001)
    if kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)  # stopped
    if kind == "another collective":
        dist.broadcast(torch.ones(4), 0)  # another collective
    if kind == "receive":
        dist.recv(torch.ones(4), 3)  # receive
    if kind == "worker":
        for _ in DataLoader(Blocked(), num_workers=1, batch_size=2):  # worker's loop
            pass
    if kind == "pipe":
        _, end = os.pipe()
        while True:
            os.write(end, bytes(65536))  # pipe
    if kind == "fifo":
        os.mkfifo(f"{folder}/fifo")
        open(f"{folder}/fifo")  # fifo
    if kind == "queue":
        queue.Queue().get()  # queue
    if kind == "event":
        threading.Event().wait()  # event
    if kind == "asyncio":
        asyncio.run(asyncio.sleep(LONG))  # asyncio
    if kind == "socket":
        here, there = socket.socketpair()
        here.recv(1)  # socket
    if kind == "child":
        subprocess.run(["sleep", str(LONG)])  # child
    if kind == "pool":
        with multiprocessing.get_context("fork").Pool(1) as pool:
            pool.map(in_child, [1])  # pool's map
    if kind == "file lock":
        path = f"{folder}/lock"
        holder = subprocess.Popen(["flock", path, "sh", "-c", f"echo; sleep {LONG}"], stdout=subprocess.PIPE)
        holder.stdout.readline()
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # file lock
    if kind == "at exit":
        atexit.register(wait_at_exit)
        sys.exit()
    if kind == "thread at the end":
        threading.Thread(target=write_logs, name="logger").start()
        sys.exit()
    if kind == "key":
        dist.distributed_c10d._get_default_store().get("never")  # key
    if kind == "once" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        never().acquire()  # once
    if kind == "masked":
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
        never().acquire()  # masked


def hold_gil():
    ctypes.PyDLL(None).sleep(LONG)  # gil of a thread


def wait_at_exit():
    never().acquire()  # at exit


def write_logs():
    never().acquire()  # thread at the end


def cascade(rank):
    """Rank 2 stops, 3 waits for it in one group, 0 and 1 for 3 in others."""
    pairs = [dist.new_group([2, 3]), dist.new_group([1, 3]), dist.new_group([0, 1])]
    if rank == 2:
        never().acquire()  # cascade
    for group, members in zip(pairs, ([2, 3], [1, 3], [0, 1])):
        if rank in members:
            dist.all_reduce(torch.ones(1), group=group)


def one_batch_less(rank):
    for _ in range(4 if rank == 2 else 5):
        step()
    dist.barrier()  # one batch less


def backward(rank):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    loss = model(torch.ones(1, 4)).sum()
    if rank == 2:
        never().acquire()  # backward
    loss.backward()


def asynchronous(rank):
    if rank == 2:
        never().acquire()  # asynchronous
    work = dist.all_reduce(torch.ones(4), async_op=True)
    work.wait()


def monitored(rank):
    if rank == 2:
        never().acquire()  # monitored
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=LONG))


if __name__ == "__main__":
    folder = tempfile.mkdtemp(dir=folder)
    if kind == "never joins" and os.environ["RANK"] == "2":
        never().acquire()  # never joins
    join()
    own = {"cascade": cascade, "one batch less": one_batch_less, "backward": backward, "asynchronous": asynchronous,
           "monitored": monitored}
    step()
    if kind in own:
        own[kind](dist.get_rank())
    if dist.get_rank() == 2:
        odd()
    step()
    step()
