"""One loop over a loader whose batches data workers make."""

from __future__ import annotations

import collections
import contextlib
import time
import weakref
from typing import TYPE_CHECKING, Any

from ..order.task import Task, UndeliverableBatch
from .outcome import Failed, Outcome, Ready, Refused, raise_again
from .progress import Progress

if TYPE_CHECKING:
    from .registered import Registered
    from .remote import RemoteStream

_PATIENCE_SECONDS = 0.1
_LINE_EVERY_SECONDS = 30.0


class Loop:
    """Gives an epoch's batches in the sampler's order, whoever makes them.

    What is submitted is certain: it is the loop's next batches, as many as fit. Closed at its end, and when nobody has
    it.
    """

    def __init__(self, registration: Registered, loader: Any) -> None:
        self._registration = registration
        self._loader = loader
        self._progress, self._order, self._stream = registration.begin_epoch(loader)
        self._under_way: collections.deque[Task] = collections.deque()
        self._unsent: Task | None = None
        self._is_over = False
        self._closing = weakref.finalize(self, _leave, self._stream, self._progress)
        self._closing.atexit = False
        self._fill()

    def __iter__(self) -> Loop:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        if self._is_over:
            raise StopIteration
        try:
            return self._next()
        except StopIteration:
            self.close()
            self._registration.end_epoch(self._progress)
            raise

    def close(self) -> None:
        """Ends the loop early: what is under way is thrown away."""
        self._is_over = True
        self._closing()

    def _next(self) -> Any:
        while True:
            if self._progress.is_enough():
                raise StopIteration
            if not self._under_way:
                self._fill()
            if not self._under_way or self._order.is_over:
                raise StopIteration
            task = self._under_way[0]
            outcome = self._wait(task)
            self._under_way.popleft()
            self._order.take()
            facts = outcome.facts if isinstance(outcome, Ready) else None
            self._order.delivered(task, facts)
            self._fill()
            if facts and not facts.samples:  # the end of a shard
                continue
            if self._order.to_drop and isinstance(outcome, (Ready, Failed)):
                self._order.to_drop -= 1
            elif isinstance(outcome, Ready):
                self._progress.count(task, outcome)
                self._progress.report()
                return outcome.batch
            else:
                self._without_batch(task, outcome)

    def _fill(self) -> None:
        """As many tasks as may be under way are submitted, as far as they are drawn."""
        window = self._stream.window()
        with contextlib.suppress(StopIteration):
            while len(self._under_way) < window:
                self._unsent = self._unsent or self._order.next()
                if self._unsent is None:
                    return
                self._stream.submit(self._unsent)
                self._under_way.append(self._unsent)
                self._unsent = None

    def _wait(self, task: Task) -> Outcome:
        start = said = time.monotonic()
        stream = self._stream
        stream.tend()
        while (outcome := stream.next(self._patience(start))) is None:
            stream.tend()
            self._progress.report()
            if time.monotonic() - said >= _LINE_EVERY_SECONDS:
                said = time.monotonic()
                self._registration.waits(task, said - start, stream.statistics()["workers"])
            if 0 < self._loader.timeout <= time.monotonic() - start:
                raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds: {task} is not there")
        self._progress.totals.waited += time.monotonic() - start
        return outcome

    def _patience(self, start: float) -> float:
        if not self._loader.timeout:
            return _PATIENCE_SECONDS
        return max(0.0, min(_PATIENCE_SECONDS, start + self._loader.timeout - time.monotonic()))

    def _without_batch(self, task: Task, outcome: Outcome) -> None:
        if isinstance(outcome, Refused):
            raise UndeliverableBatch(f"taas: {task}: {outcome.message}")
        elif isinstance(outcome, Failed):
            if not self._registration.skips(outcome, task):
                raise_again(outcome, task)


def _leave(stream: RemoteStream, progress: Progress) -> None:
    stream.close()
    progress.report(is_left=True)
