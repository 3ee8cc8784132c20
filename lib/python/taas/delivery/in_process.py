"""Batches made in the training process itself: `--cpus 0`, or no native module."""

from __future__ import annotations

import collections
import contextlib
import threading
import traceback
from typing import Any

from torch.utils.data import DataLoader

from ..batch import layout, tree, untree
from ..batch.outcome import Ended, Failed, Outcome, Ready, Refused
from ..code.recipe import Recipe, recipe_of
from ..order.task import Task
from ..program import random_states
from ..program.threads import of_a_worker
from ..runtime import native
from ..worker.answer import Answer, Made, Over, Raised
from ..worker.errors import unpickled
from ..worker.fetch import Exhausted, Fetcher
from ..worker.logical_process import Ended as ProcessEnded
from ..worker.logical_process import LogicalProcess
from .base import Delivery
from .feed import Opening

_TASKS_OF_A_WORKER = 2  # under way, as with the plain loader's prefetch_factor
_leaving: list[LogicalProcess] = []


class InProcessStream:
    """One epoch's tasks. The process' random states stay as they are.

    With num_workers each logical worker is a fork, made when the epoch begins, as those of the plain loader. Otherwise a task is done
    when it is asked for; by a fork as well where another thread asks than the one that began: the random states are the program's,
    which draws from them meanwhile.
    """

    def __init__(self, recipe: Recipe, persistent: list[LogicalProcess] | None = None) -> None:
        """`persistent`: logical workers of the loops before, or room for those of this one: they stay when it ends."""
        self._recipe = recipe
        self._fetcher = Fetcher(recipe, is_at_home=True)
        self._tasks: collections.deque[Task] = collections.deque()
        self._thread = threading.get_ident()
        self._is_persistent = persistent is not None
        self._workers: list[LogicalProcess] = persistent if persistent is not None else []
        if any(process.has_ended() for process in self._workers):
            end_all(self._workers)
        if not self._workers and (recipe.needs_processes or recipe.num_workers and recipe.forks):
            for number in range(recipe.num_workers):
                self._start(number)

    def submit_task(self, task: Task) -> None:
        """One more task, to be made after those before it."""
        self._tasks.append(task)
        if self._workers:
            with contextlib.suppress(ProcessEnded):  # next() says so
                self._workers[task.logical_worker].ask(task.to_bytes(), None)

    def next(self, seconds: float) -> Outcome | None:
        """The next task's outcome."""
        task = self._tasks.popleft()
        if not self._workers and threading.get_ident() == self._thread:
            with random_states.kept():
                return self._made(task)
        if not self._workers:
            self._start(-1)
            self._workers[-1].ask(task.to_bytes(), None)
        try:
            return _outcome_of(self._workers[task.logical_worker].receive())
        except ProcessEnded as ended:
            return Refused(str(ended))

    def window(self) -> int:
        """How many tasks may be under way."""
        return max(1, _TASKS_OF_A_WORKER * len(self._workers) if self._recipe.num_workers else 1)

    def statistics(self) -> dict[str, int]:
        """For the launcher: there are no workers."""
        return {"buffered": 0, "workers": 0, "hedged": 0}

    def tend(self) -> None:
        """Nothing to look after."""

    def pin(self) -> None:
        """There is no memory of the delivery."""

    def close(self) -> None:
        if self._is_persistent and self._workers:
            with contextlib.suppress(ProcessEnded):
                for task in self._tasks:  # answers that nobody waits for any more
                    self._workers[task.logical_worker].receive()
        else:
            end_all(self._workers)
        self._tasks.clear()

    def _start(self, logical_worker: int) -> None:
        with of_a_worker(logical_worker):
            self._workers.append(LogicalProcess(self._recipe, lambda: None))

    def _made(self, task: Task) -> Outcome:
        try:
            with of_a_worker(task.logical_worker):
                batch = self._fetcher.fetch(task)
        except Exhausted:
            return Ended()
        except Exception as error:
            place = f" (index {self._fetcher.failed_index!r})" if self._fetcher.failed_index is not None else ""
            return Failed(error, traceback.format_exc(), f"the training process{place}")
        return _ready(batch, task.is_of_the_process)


def end_all(processes: list[LogicalProcess]) -> None:
    """Of an epoch, or a loader, that is over."""
    for process in processes:
        process.end()
    _leaving[:] = [process for process in (*_leaving, *processes) if not process.has_ended()]
    processes.clear()


def _outcome_of(answer: Answer) -> Outcome:
    if isinstance(answer, Made):
        payload = layout.joined(answer.buffers)
        return Ready(untree.decode(answer.description, payload), len(payload), native.digest(payload), answer.description)
    if isinstance(answer, Over):
        return Ended()
    if isinstance(answer, Raised):
        return Failed(unpickled(*answer), answer.text, "a logical worker's process")
    return Refused(f"there is not enough memory for it ({answer.why})")


def _ready(batch: Any, exact: bool) -> Ready:
    """With `exact` the batch itself. Else what comes of it on its way from a worker, where it can be sent: copies."""
    try:
        description, buffers = tree.encode(batch, exact)
    except Exception:
        return Ready(batch, 0, 0, "")
    payload = layout.joined(buffers)
    return Ready(batch if exact else untree.decode(description, payload), len(payload), native.digest(payload), description)


class InProcess(Delivery):
    """No data workers."""

    is_apart = False

    def __init__(self) -> None:
        self._unused: dict[int, list[InProcessStream]] = {}  # by registration
        self._persistent: dict[int, list[LogicalProcess]] = {}

    @classmethod
    def in_the_place_of(cls, other: Delivery) -> InProcess:
        """With what the run wants of it."""
        delivery = cls()
        delivery.on_error, delivery.samples_wanted = other.on_error, other.samples_wanted
        return delivery

    def opener(self, registered: Any, loader: DataLoader) -> Opening:
        """The first stream begins with the dataset as it is now: a sampler may change it when it is drawn."""
        self._close_unused(registered.token)
        recipe = recipe_of(loader)
        kept = self._persistent.setdefault(registered.token, []) if loader.persistent_workers else None
        first = self._unused[registered.token] = [InProcessStream(recipe, kept)]
        return Opening("", lambda: first.pop() if first else InProcessStream(recipe, kept))

    def release(self, token: int) -> None:
        self._close_unused(token)
        end_all(self._persistent.pop(token, []))

    def _close_unused(self, token: int) -> None:
        for unused in self._unused.pop(token, []):
            unused.close()
