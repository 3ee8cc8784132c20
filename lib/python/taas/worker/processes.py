"""Data workers that this process starts itself, on this machine: forks of it, or programs of their own."""

from __future__ import annotations

import io
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
from typing import Any, Callable, NoReturn

import torch
from torch.utils.data._utils import MP_STATUS_CHECK_INTERVAL


class Process:
    """A child of this process.

    Belongs to whoever made it, who ends it. It is told to leave by an eventfd: see leaving.py.
    """

    def __init__(self, pid: int, leaving: io.FileIO) -> None:
        self.pid = pid
        self._leaving = leaving
        self._status: int | None = None

    def is_alive(self) -> bool:
        """Asks the system, without waiting."""
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it
                pid, status = self.pid, 0
            self._status = status if pid else None
        return self._status is None

    def why_ended(self) -> str:
        """Of one that is not alive: "was killed by SIGKILL", "ended with code 3"."""
        return described(self._status or 0)

    def ask_to_end(self) -> None:
        """Does not wait for it."""
        os.eventfd_write(self._leaving.fileno(), 1)

    def end(self) -> None:
        """Asks it to, and kills it when that has not helped within the time that torch gives its own workers."""
        self.ask_to_end()
        if self.is_alive() and not ends_within(self.pid, MP_STATUS_CHECK_INTERVAL):
            os.kill(self.pid, signal.SIGKILL)
            ends_within(self.pid, None)
        self.is_alive()


Starter = Callable[[int, socket.socket], Process]
"""Starts the worker with this index, which is to serve this listening socket."""


def ends_within(pid: int, seconds: float | None) -> bool:
    """Whether a child that was not waited for has ended; looks so long for it at most. None: for ever."""
    handle = os.pidfd_open(pid)
    try:
        return is_readable(handle, seconds)
    finally:
        os.close(handle)


def is_readable(descriptor: int, seconds: float | None) -> bool:
    """Waits so long for it at most; None: for ever. Descriptors may be above 1023, as select() has them not."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else 1000 * max(0.0, seconds)))


def described(status: int) -> str:
    """How a process ended, by what waitpid() said."""
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        return "was killed by SIGKILL (out of memory, perhaps)"
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def fork(run: Callable[[int, socket.socket, int], None]) -> Starter:
    """Workers that have all of this process' memory. `run` is called in the child; the last argument is its eventfd."""

    def start(index: int, listener: socket.socket) -> Process:
        leaving = _eventfd()
        return Process(forked(lambda: run(index, listener, leaving.fileno())), leaving)

    return start


def _eventfd() -> io.FileIO:
    return open(os.eventfd(0), "wb", buffering=0)


def forked(run: Callable[[], None]) -> int:
    """The process id of a fork in which `run` is called, and which ends when that returns.

    To its code it is what a worker process of torch is: a daemonic process of multiprocessing, whose hooks after a fork
    and at the end have run.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    process = multiprocessing.Process(target=_run_and_leave, args=(run,), daemon=True)
    pid = os.fork()
    if pid == 0:
        _child(process)
    return pid


def _child(process: Any) -> NoReturn:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        begin_as_torch_does()
        code = process._bootstrap(_parent())
    finally:
        os._exit(code)


def begin_as_torch_does() -> None:
    """What torch's own workers do first: a line for a SIGSEGV, SIGBUS or SIGFPE, and one thread for torch's work."""
    torch._C._set_worker_signal_handlers()
    torch.set_num_threads(1)


def _parent() -> int | None:
    """Readable once the parent has ended: what multiprocessing.parent_process() waits for."""
    try:
        return os.pidfd_open(os.getppid())
    except OSError:
        return None


def _run_and_leave(run: Callable[[], None]) -> None:
    """What is to be done at the end has as long as torch gives it: queues are flushed, threads are waited for."""
    try:
        run()
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(MP_STATUS_CHECK_INTERVAL))


def program(plan: str) -> Starter:
    """Workers that are `python -m taas.worker` and read the file `plan`.

    Strings have the same hashes in all of them.
    """

    def start(index: int, listener: socket.socket) -> Process:
        leaving = _eventfd()
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        environment = {
            "PYTHONHASHSEED": "0",
            **os.environ,
            "PYTHONPATH": path,
            "TAAS_ROLE": "data-worker",
            "TAAS_DATA_PLAN": plan,
            "TAAS_DATA_WORKER": str(index),
            "TAAS_DATA_LISTEN": f"-,{listener.fileno()}",
            "TAAS_DATA_PARENT": str(os.getpid()),
            "TAAS_DATA_LEAVING": str(leaving.fileno()),
        }
        started = subprocess.Popen(
            [sys.executable, "-u", "-m", "taas.worker"],
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[listener.fileno(), leaving.fileno()],
            start_new_session=True,
        )
        return Process(started.pid, leaving)

    return start
