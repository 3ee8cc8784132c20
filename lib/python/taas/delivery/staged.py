"""Batches that are copied elsewhere while the loop is at those before them."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, Callable, Protocol

from ..batch.outcome import Outcome, Ready
from ..order.task import Task
from .feed import Stream

BATCHES_AHEAD = 2
"""So many are there, or on their way, beside the one that the loop has."""


class Copies(Protocol):
    """Copies batches, while the caller goes on."""

    def start(self, batch: Any) -> Any:
        """Asks for the copy. What it returns is for finish alone; `batch` may be let go."""
        ...

    def finish(self, started: Any) -> Any:
        """The copy, for all that the loop does from now on."""
        ...


class StagedStream:
    """A stream whose outcomes are taken from another one ahead of the loop, as far as they are there."""

    def __init__(self, stream: Stream, copies: Callable[[], Copies]) -> None:
        self._stream = stream
        self._make_copies = copies
        self._made: Copies | None = None
        self._under_way = 0  # tasks of the other stream
        self._ahead: collections.deque[tuple[Outcome, Any]] = collections.deque()

    def submit_task(self, task: Task) -> None:
        self._stream.submit_task(task)
        self._under_way += 1

    def next(self, seconds: float) -> Outcome | None:
        """The next task's outcome. The copies of those after it are asked for before the loop gets it."""
        if not self._ahead and not self._take(seconds):
            return None
        outcome, started = self._ahead.popleft()
        while len(self._ahead) < BATCHES_AHEAD and self._under_way and self._take(0.0):
            pass
        if not isinstance(outcome, Ready):
            return outcome
        copies = self._copies()
        started = copies.start(outcome.batch) if started is None else started
        return dataclasses.replace(outcome, batch=copies.finish(started))

    def _copies(self) -> Copies:
        self._made = self._made or self._make_copies()
        return self._made

    def window(self) -> int:
        return self._stream.window()

    def statistics(self) -> dict[str, int]:
        return self._stream.statistics()

    def tend(self) -> None:
        self._stream.tend()

    def close(self) -> None:
        self._ahead.clear()
        self._stream.close()

    def _take(self, seconds: float) -> bool:
        outcome = self._stream.next(seconds)
        if outcome is None:
            return False
        self._under_way -= 1
        self._ahead.append((outcome, self._started(outcome)))
        return True

    def _started(self, outcome: Outcome) -> Any:
        """None where nothing is copied, and where that fails: it is tried again when the loop is there, and raises then."""
        if not isinstance(outcome, Ready):
            return None
        try:
            started = self._copies().start(outcome.batch)
        except Exception:
            return None
        outcome.batch = None if started is not None else outcome.batch  # its memory is free when the copy is done
        return started
