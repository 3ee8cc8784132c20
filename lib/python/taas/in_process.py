"""Batches made in the training process itself: `--cpus 0`, or no native module."""

from __future__ import annotations

import collections
import threading
import traceback
from typing import Any

from . import layout, logical_process, native, random_states, tree, untree
from .answer import Answer, Made, Over, Raised
from .errors import unpickled
from .fetch import Exhausted, Fetcher
from .logical_processes import LogicalProcesses
from .outcome import Ended, Failed, Outcome, Ready, Refused
from .recipe import Recipe
from .task import Task
from .threads import of_a_worker


class InProcessStream:
    """One epoch's tasks; each is made when it is asked for. The process' random states stay as they are.

    Logical workers that need processes of their own are forks, as those of the plain loader: they make what they are asked for. So does
    a fork where another thread asks than the one that began: the random states are the program's, which draws from them meanwhile.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._fetcher = Fetcher(recipe, is_at_home=True)
        self._processes = LogicalProcesses()
        self._tasks: collections.deque[Task] = collections.deque()
        self._thread = threading.get_ident()

    def submit_task(self, task: Task) -> None:
        """One more task, to be made after those before it."""
        self._tasks.append(task)

    def next(self, seconds: float) -> Outcome | None:
        """The next task's outcome."""
        task = self._tasks.popleft()
        if self._fetcher.recipe.needs_processes or threading.get_ident() != self._thread:
            return self._made_by_a_fork(task)
        with random_states.kept():
            return self._made(task)

    def window(self) -> int:
        """How many tasks may be under way."""
        return 1

    def statistics(self) -> dict[str, int]:
        """For the launcher: there are no workers."""
        return {"buffered": 0, "workers": 0, "hedged": 0}

    def tend(self) -> None:
        """Nothing to look after."""

    def pin(self) -> None:
        """There is no memory of the delivery."""

    def close(self) -> None:
        self._tasks.clear()
        self._processes.close()

    def _made_by_a_fork(self, task: Task) -> Outcome:
        try:
            with of_a_worker(task.logical_worker):
                return _outcome_of(self._processes.answer("", self._fetcher.recipe, b"", task.to_bytes(), task, None))
        except logical_process.Ended as ended:
            return Refused(str(ended))

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
