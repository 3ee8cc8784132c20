"""The processes of the logical workers that a data worker stands in for."""

from __future__ import annotations

import collections
import contextlib
import os
import socket
from typing import Any, Iterator

from ..code.recipe import Recipe
from ..order.task import Task
from .answer import Answer, NoMemory
from .logical_process import Ended, LogicalProcess
from .process_end import die_with, end_as

_KEPT_OF_EACH = 2  # the epoch that a loop is in, and the next one, or the one before
_KEPT = 128

Key = tuple[Any, ...]


class LogicalProcesses:
    """Starts one where a logical worker is asked for its first batch of an epoch, and ends it some epochs later.

    They die with the data worker, and it with one of them.
    """

    def __init__(self) -> None:
        self._parent = os.getpid()
        self._running: collections.OrderedDict[Key, _Running] = collections.OrderedDict()
        self._ended: list[LogicalProcess] = []

    def answer(self, name: str, recipe: Recipe, state: bytes, payload: bytes, task: Task, stream: Any) -> Answer:
        """What comes of `task`, whose bytes are `payload`.

        `name` tells recipes apart; this process is in the state `state`.
        """
        try:
            process = self.process_for(name, recipe, state, task, stream)
        except OSError as error:
            return no_process(error)
        with _dying_with_it():
            return process.answer(payload, stream)

    def ask(self, process: LogicalProcess, payload: bytes, stream: Any) -> None:
        """As LogicalProcess.ask."""
        with _dying_with_it():
            process.ask(payload, stream)

    def receive(self, process: LogicalProcess) -> Answer:
        """As LogicalProcess.receive."""
        with _dying_with_it():
            return process.receive()

    def begin(self) -> None:
        """First of all, in a fork: the data worker's links close when it dies, and are not the fork's."""
        die_with(self._parent)
        _close_links()

    def running(self, name: str, recipe: Recipe, state: bytes, task: Task, stream: Any) -> bool:
        """Whether the process for `task` is there: process_for() starts and ends none."""
        running = self._running.get(_key(name, recipe, state, task, stream))
        return running is not None and not running.is_past(task, stream)

    def process_for(self, name: str, recipe: Recipe, state: bytes, task: Task, stream: Any) -> LogicalProcess:
        """That which makes `task` next. Raises OSError where there can be no further process."""
        key = _key(name, recipe, state, task, stream)
        running = self._running.get(key)
        if running is not None and running.is_past(task, stream):
            self._end(key)
            running = None
        running = running or self._started(key, recipe)
        self._running.move_to_end(key)
        running.stream, running.turn = stream, task.turn + 1
        return running.process

    def _started(self, key: Key, recipe: Recipe) -> _Running:
        siblings = [other for other in self._running if other[0] == key[0]]
        for other in siblings[: len(siblings) + 1 - _KEPT_OF_EACH]:
            self._end(other)
        while len(self._running) >= _KEPT:
            self._end(next(iter(self._running)))
        self._running[key] = _Running(LogicalProcess(recipe, self.begin))
        return self._running[key]

    def _end(self, key: Key) -> None:
        process = self._running.pop(key).process
        process.end()
        self._ended = [each for each in (*self._ended, process) if not each.has_ended()]


def no_process(error: OSError) -> NoMemory:
    """What to answer where process_for() has raised."""
    return NoMemory(f"no further process for a logical worker: {error.strerror}")


def _key(name: str, recipe: Recipe, state: bytes, task: Task, stream: Any) -> Key:
    epoch = None if recipe.persistent else stream if recipe.iterable else task.seeds.epoch
    of_worker = (task.seeds.initial, task.seeds.rank, task.seeds.ordinal, task.logical_worker, task.dealt)
    return of_worker, name, epoch, state


class _Running:
    def __init__(self, process: LogicalProcess) -> None:
        self.process = process
        self.stream: Any = None
        self.turn = 0

    def is_past(self, task: Task, stream: Any) -> bool:
        """A stream does not go back."""
        return stream == self.stream and 0 <= task.turn < self.turn


@contextlib.contextmanager
def _dying_with_it() -> Iterator[None]:
    try:
        yield
    except Ended as ended:
        end_as(ended.status)


def _close_links() -> None:
    """The listening sockets of this process, and what was accepted by them."""
    sockets = [socket.socket(fileno=int(name)) for name in os.listdir("/proc/self/fd") if _is_socket(name)]
    listening = {each.getsockname() for each in sockets if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)}
    for each in sockets:
        if each.getsockname() and each.getsockname() in listening:
            each.close()
        else:
            each.detach()


def _is_socket(name: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    except OSError:
        return False
