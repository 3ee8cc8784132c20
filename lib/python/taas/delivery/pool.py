"""A number of data workers on this machine, kept alive."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from dataclasses import dataclass
from typing import Callable

from ..runtime import events, own_files
from ..worker.processes import Process, Starter

_BACKLOG = 64
_FEW_SECONDS = 10.0
_DEATHS_AT_ONCE = 3
_DEATHS_WITHOUT_A_BATCH = 10


class WorkersKeepDying(RuntimeError):
    """Data workers die again and again, and no batch comes."""


@dataclass
class _Place:
    path: str
    listener: socket.socket
    process: Process
    is_given_up: bool = False


def _new_folder() -> str:
    """A new folder where this process may make one.

    In the ranks of a notebook's cell that is not above the project, whatever tempfile has found out before they were
    kept from it.
    """
    try:
        return tempfile.mkdtemp(prefix="taas-data-")
    except PermissionError:
        tempfile.tempdir = None
        return tempfile.mkdtemp(prefix="taas-data-")


class Pool:
    """Owns its processes, their listening sockets and the private folder that these are in.

    A worker that died is started again in its place: its address stays. Only tend() starts processes, in the thread of
    the loop: forking from another one could copy a lock that the loop's thread holds.
    """

    def __init__(self) -> None:
        self.folder = _new_folder()
        self._held = own_files.open_folder(self.folder)
        self.starter: Starter | None = None
        self._places: list[_Place] = []
        self._deaths: list[float] = []
        self._fruitless = 0
        self._owner = os.getpid()

    def grow(self, count: int) -> bool:
        """Starts workers until there are `count`; True when that has changed the addresses."""
        before = len(self._places)
        while len(self._places) < count:
            self._places.append(self._opened(len(self._places)))
        return len(self._places) > before

    def paths(self) -> list[str]:
        """The Unix sockets that the workers listen on."""
        return [place.path for place in self._places]

    def pids(self) -> list[int]:
        """The workers' process ids."""
        return [place.process.pid for place in self._places]

    def start_anew(self) -> None:
        """Ends all workers and starts others in their places."""
        for place in self._places:
            place.process.ask_to_end()
        for index, place in enumerate(self._places):
            place.process.end()
            place.process, place.is_given_up = self._process(index, place.listener), False

    def tend(self, may_start: Callable[[], bool] = lambda: True) -> None:
        """Starts again what has died, if it may.

        Raises WorkersKeepDying when that has not helped ten times in a row, or nobody is left.
        """
        for index, place in enumerate(self._places):
            if place.is_given_up or place.process.is_alive():
                continue
            place.is_given_up = not may_start()
            if place.is_given_up:
                self._go_on_without(index, place.process)
            else:
                self._mourn(index, place.process)
                place.process = self._process(index, place.listener)

    def batch_came(self) -> None:
        """The workers do well."""
        self._fruitless = 0

    def close(self) -> None:
        """Ends the workers. Does nothing in a fork of the process: they are its parent's."""
        if os.getpid() != self._owner:
            return
        for place in self._places:
            place.process.ask_to_end()
        for place in self._places:
            place.process.end()
            place.listener.close()
        self._places.clear()
        if self._held >= 0:
            own_files.clear(self._held)
            os.close(self._held)
            self._held = -1
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)

    def _process(self, index: int, listener: socket.socket) -> Process:
        if self.starter is None:
            raise RuntimeError("a pool has a starter before it has workers")
        return self.starter(index, listener)

    def _opened(self, index: int) -> _Place:
        path = os.path.join(self.folder, f"worker-{index}")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(_BACKLOG)
        return _Place(path, listener, self._process(index, listener))

    def _go_on_without(self, index: int, process: Process) -> None:
        why = (
            "a new one would see the dataset as it is now, which is not as it was when the loop began, or cannot be "
            "compared"
        )
        if all(place.is_given_up for place in self._places):
            raise WorkersKeepDying(f"taas: data worker {index} {process.why_ended()}, the last one: {why}")
        events.remark_once(f"data worker {index} {process.why_ended()}; the others go on without it: {why}")

    def _mourn(self, index: int, process: Process) -> None:
        """Says it once, and holds back where workers die faster than they work."""
        events.remark_once(f"data worker {index} {process.why_ended()}; another one has taken its place")
        self._fruitless += 1
        if self._fruitless >= _DEATHS_WITHOUT_A_BATCH:
            raise WorkersKeepDying(
                f"taas: data workers died {self._fruitless} times and no batch came in between: "
                f"the last one {process.why_ended()}"
            )
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < _FEW_SECONDS] + [now]
        if len(self._deaths) > _DEATHS_AT_ONCE:
            time.sleep(min(1.0, 0.01 * 2 ** (len(self._deaths) - _DEATHS_AT_ONCE)))
