"""Data workers that this process starts itself, on this machine: forks of it, or programs of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import Callable

Starter = Callable[[int, socket.socket], int]
"""Starts the worker with this index, which is to serve this listening socket; returns its process id."""

_PATIENCE_SECONDS = 2.0


class Process:
    """A child of this process. Belongs to whoever made it, who ends it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
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

    def signal(self, number: int) -> None:
        """Sends a signal, as long as it is alive."""
        if self.is_alive():
            os.kill(self.pid, number)

    def end(self) -> None:
        """SIGTERM, and SIGKILL when that has not helped within two seconds."""
        self.signal(signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self.is_alive() and time.monotonic() < deadline:
            time.sleep(0.002)
        self.signal(signal.SIGKILL)
        while self.is_alive():
            time.sleep(0.002)


def described(status: int) -> str:
    """How a process ended, by what waitpid() said."""
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        return "was killed by SIGKILL (out of memory, perhaps)"
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def fork(run: Callable[[int, socket.socket], None]) -> Starter:
    """Workers that have all of this process' memory. `run` is called in the child."""
    return lambda index, listener: forked(lambda: run(index, listener))


def forked(run: Callable[[], None]) -> int:
    """The process id of a fork in which `run` is called. It ends when that returns."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _child(run)
    return pid


def _child(run: Callable[[], None]) -> None:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        run()
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def program(plan: str) -> Starter:
    """Workers that are `python -m taas.worker` and read the file `plan`. Strings have the same hashes in all of them."""

    def start(index: int, listener: socket.socket) -> int:
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        environment = {"PYTHONHASHSEED": "0", **os.environ, "PYTHONPATH": path, "TAAS_ROLE": "data-worker", "TAAS_DATA_PLAN": plan,
                       "TAAS_DATA_WORKER": str(index), "TAAS_DATA_LISTEN": f"-,{listener.fileno()}",
                       "TAAS_DATA_PARENT": str(os.getpid())}
        return subprocess.Popen([sys.executable, "-u", "-m", "taas.worker"], env=environment, stdin=subprocess.DEVNULL,
                                pass_fds=[listener.fileno()], start_new_session=True).pid

    return start
