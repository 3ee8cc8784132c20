"""Batches made by forks of the training process that are made when a loop begins, as torch's own workers are.

For `--cpus 0`, no native module, and datasets that hold what only one process can use.
"""

from __future__ import annotations

import collections
import contextlib
from typing import Any, Sequence

from torch.utils.data import DataLoader

from ..batch import layout, untree
from ..batch.outcome import Bundle, Ended, Failed, Outcome, Ready, Refused
from ..code.recipe import Recipe, recipe_of
from ..order.bundle import payload_of
from ..order.task import Task
from ..runtime import native
from ..worker.answer import Answer, Made, Over, Raised
from ..worker.bundled import is_bundle
from ..worker.errors import unpickled
from ..worker.logical_process import Ended as ProcessEnded
from ..worker.logical_process import LogicalProcess
from .base import Delivery
from .bundles import Bundles, bundle_of
from .feed import Opening

_WHERE = "a fork of the training process"
_TASKS_OF_A_WORKER = 2  # under way, as with the plain loader's prefetch_factor
_leaving: list[LogicalProcess] = []


class LoopForksStream:
    """One epoch's tasks: each logical worker is a fork, made when the epoch begins."""

    takes_bundles = True

    def __init__(self, recipe: Recipe, persistent: list[LogicalProcess] | None = None) -> None:
        """`persistent`: logical workers of the loops before, or room for those of this one: they stay when it ends."""
        self._tasks: collections.deque[Sequence[Task]] = collections.deque()
        self._is_persistent = persistent is not None
        self._workers: list[LogicalProcess] = persistent if persistent is not None else []
        if any(process.has_ended() for process in self._workers):
            end_all(self._workers)
        while len(self._workers) < recipe.shards:
            self._workers.append(LogicalProcess(recipe, lambda: None))

    def submit(self, tasks: Sequence[Task]) -> None:
        """To be made after those before them, by one worker."""
        self._tasks.append(tasks)
        with contextlib.suppress(ProcessEnded):  # next() says so
            self._worker_of(tasks).ask(payload_of([task.to_bytes() for task in tasks]), None)

    def next(self, seconds: float) -> Outcome | Bundle | None:
        """The next tasks' outcome; None when `seconds` are over first."""
        worker = self._worker_of(self._tasks[0])
        if not worker.has_answer(seconds):
            return None
        self._tasks.popleft()
        try:
            return _outcome_of(worker.receive())
        except ProcessEnded as ended:
            return Refused(str(ended))

    def window(self) -> int:
        """How many tasks may be under way."""
        return _TASKS_OF_A_WORKER * len(self._workers)

    def statistics(self) -> dict[str, int]:
        """For the launcher: there are no data workers."""
        return {"buffered": 0, "workers": 0, "hedged": 0}

    def tend(self) -> None:
        """Nothing to look after."""

    def pin(self) -> None:
        """There is no memory of the delivery."""

    def close(self) -> None:
        if self._is_persistent:
            with contextlib.suppress(ProcessEnded):
                for tasks in self._tasks:  # answers that nobody waits for any more
                    self._worker_of(tasks).receive()
        else:
            end_all(self._workers)
        self._tasks.clear()

    def _worker_of(self, tasks: Sequence[Task]) -> LogicalProcess:
        return self._workers[max(0, tasks[0].logical_worker)]


def end_all(processes: list[LogicalProcess]) -> None:
    """Of an epoch, or a loader, that is over."""
    for process in processes:
        process.end()
    _leaving[:] = [process for process in (*_leaving, *processes) if not process.has_ended()]
    processes.clear()


def _outcome_of(answer: Answer) -> Outcome | Bundle:
    if isinstance(answer, Made):
        payload = layout.joined(answer.buffers)
        if is_bundle(answer.description):
            return bundle_of(answer.description, memoryview(payload), _WHERE)
        return Ready(
            untree.decode(answer.description, payload), len(payload), native.digest(payload), answer.description
        )
    if isinstance(answer, Over):
        return Ended()
    if isinstance(answer, Raised):
        return Failed(unpickled(*answer), answer.text, _WHERE)
    return Refused(f"there is not enough memory for it ({answer.why})")


class LoopForks(Delivery):
    """No data workers."""

    def __init__(self) -> None:
        self._unused: dict[int, list[LoopForksStream]] = {}  # by registration
        self._persistent: dict[int, list[LogicalProcess]] = {}

    @classmethod
    def in_the_place_of(cls, other: Delivery) -> LoopForks:
        """With what the run wants of it."""
        delivery = cls()
        delivery.on_error, delivery.samples_wanted = other.on_error, other.samples_wanted
        return delivery

    def opener(self, registered: Any, loader: DataLoader) -> Opening:
        """The first stream begins with the dataset as it is now: a sampler may change it when it is drawn."""
        self._close_unused(registered.token)
        recipe = recipe_of(loader)
        kept = self._persistent.setdefault(registered.token, []) if loader.persistent_workers else None
        first = self._unused[registered.token] = [LoopForksStream(recipe, kept)]
        return Opening("", lambda: Bundles(first.pop() if first else LoopForksStream(recipe, kept)))

    def release(self, token: int) -> None:
        self._close_unused(token)
        end_all(self._persistent.pop(token, []))

    def _close_unused(self, token: int) -> None:
        for unused in self._unused.pop(token, []):
            unused.close()
