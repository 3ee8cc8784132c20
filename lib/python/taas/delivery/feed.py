"""Tasks ahead of the loop: submitted as they are predicted, checked when they are certain."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any, Callable, Protocol, Sequence

from ..batch.outcome import Outcome
from ..order.draws import Unknown
from ..order.order import MapOrder, ShardOrder
from ..order.task import Task


class Stream(Protocol):
    """One row of tasks and their outcomes in the same order."""

    def submit_task(self, task: Task) -> None: ...
    def next(self, seconds: float) -> Outcome | None: ...
    def window(self) -> int: ...
    def statistics(self) -> dict[str, int]: ...
    def tend(self) -> None: ...
    def pin(self) -> None: ...
    def close(self) -> None: ...


class Rows(Protocol):
    """A stream of rows of tasks, each of one logical worker: several asked for at once have one outcome, a Bundle."""

    takes_bundles: bool

    def submit(self, tasks: Sequence[Task]) -> None: ...
    def next(self, seconds: float) -> Any: ...
    def window(self) -> int: ...
    def statistics(self) -> dict[str, int]: ...
    def tend(self) -> None: ...
    def pin(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Opening:
    """Opens streams over one state of a dataset and of the program, which `digest` names."""

    digest: str
    open: Callable[[], Stream]
    shares_memory: bool = False
    """Whether workers may see what the program writes from now on, or the program what they write."""

    def __call__(self) -> Stream:
        return self.open()


class Feed:
    """Keeps a stream filled from an order. A task that was predicted wrongly is thrown away with all behind it.

    `stream` may have `submitted` in it already; `disappointed` is called when one of these was wrong.
    """

    def __init__(
        self,
        order: MapOrder | ShardOrder,
        opening: Opening,
        stream: Stream | None = None,
        submitted: Sequence[Task] = (),
        disappointed: Callable[[], None] = lambda: None,
    ) -> None:
        self._order = order
        self._opening = opening
        self.stream = stream or opening()
        self._submitted = collections.deque(submitted)
        self._prefetched = len(submitted)
        self._disappointed = disappointed
        self.is_all_submitted = False  # the epoch's last task is under way, as far as can be told

    def begin(self) -> None:
        """Submits what is known before the first next()."""
        if not self._submitted:
            self._fill(0)

    def next_task(self) -> Task:
        """The task that the loop is at: it and as many as may be behind it are submitted. Raises StopIteration."""
        task = self._order.certain()
        if self._submitted and not _same(self._submitted[0], task):
            self._disappointed() if self._prefetched > 0 else self._order.mistaken()
            self._start_anew()
        if not self._submitted:
            self._submit(task)
        self._fill(1)
        self._submitted.popleft()
        self._prefetched -= 1
        return task

    def close(self) -> None:
        """Nothing of the epoch is wanted any more."""
        self.stream.close()

    def _fill(self, taken: int) -> None:
        window = self.stream.window()
        try:
            while len(self._submitted) < window:
                self._submit(self._order.ahead(len(self._submitted) - taken))
        except StopIteration:
            self.is_all_submitted = True
        except Unknown:
            pass

    def _submit(self, task: Task) -> None:
        self.stream.submit_task(task)
        self._submitted.append(task)

    def _start_anew(self) -> None:
        self.stream.close()
        self.stream = self._opening()
        self._submitted.clear()
        self._prefetched = 0


def _same(one: Task, other: Task) -> bool:
    return one.indices is other.indices and one.number == other.number or one.to_bytes() == other.to_bytes()
