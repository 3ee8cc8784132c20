"""Tasks ahead of the loop: submitted as they are foreseen, checked when they are certain."""

from __future__ import annotations

import collections
from typing import Callable, Protocol

from .draws import Unknown
from .order import MapOrder, ShardOrder
from .outcome import Outcome
from .task import Task


class Stream(Protocol):
    """One row of tasks and their outcomes in the same order."""

    def submit(self, payload: bytes, number: int, shard: int) -> None: ...
    def next(self, seconds: float) -> Outcome | None: ...
    def window(self) -> int: ...
    def statistics(self) -> dict[str, int]: ...
    def tend(self) -> None: ...
    def close(self) -> None: ...


class Feed:
    """Keeps a stream filled from an order. A task that was foreseen wrongly is thrown away with all behind it."""

    def __init__(self, order: MapOrder | ShardOrder, open_stream: Callable[[], Stream]) -> None:
        self._order = order
        self._open_stream = open_stream
        self.stream = open_stream()
        self._submitted: collections.deque[Task] = collections.deque()

    def begin(self) -> None:
        """Submits what is known before the first next()."""
        self._fill(0)

    def next_task(self) -> Task:
        """The task that the loop is at: it and as many as may be behind it are submitted. Raises StopIteration."""
        task = self._order.certain()
        if self._submitted and not _same(self._submitted[0], task):
            self._order.mistaken()
            self._start_anew()
        if not self._submitted:
            self._submit(task)
        self._fill(1)
        self._submitted.popleft()
        return task

    def close(self) -> None:
        """Nothing of the epoch is wanted any more."""
        self.stream.close()

    def _fill(self, taken: int) -> None:
        try:
            while len(self._submitted) < self.stream.window():
                self._submit(self._order.ahead(len(self._submitted) - taken))
        except (StopIteration, Unknown):
            pass

    def _submit(self, task: Task) -> None:
        self.stream.submit(task.to_bytes(), task.number, max(0, task.logical_worker) if task.turn >= 0 else -1)
        self._submitted.append(task)

    def _start_anew(self) -> None:
        self.stream.close()
        self.stream = self._open_stream()
        self._submitted.clear()


def _same(one: Task, other: Task) -> bool:
    return one.indices is other.indices and one.number == other.number or one.to_bytes() == other.to_bytes()
