"""Batches made in the training process itself: `--cpus 0`, or no native module."""

from __future__ import annotations

import collections
import traceback

from . import layout, native, random_states, tree
from .fetch import Exhausted, Fetcher
from .outcome import Ended, Failed, Outcome, Ready
from .recipe import Recipe
from .task import Task
from .threads import of_a_worker


class InProcessStream:
    """One epoch's tasks; each is made when it is asked for. The process' random states stay as they are."""

    def __init__(self, recipe: Recipe) -> None:
        self._fetcher = Fetcher(recipe)
        self._tasks: collections.deque[Task] = collections.deque()

    def submit_task(self, task: Task) -> None:
        """One more task, to be made after those before it."""
        self._tasks.append(task)

    def next(self, seconds: float) -> Outcome | None:
        """The next task's outcome."""
        with random_states.kept():
            return self._made(self._tasks.popleft())

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

    def _made(self, task: Task) -> Outcome:
        try:
            with of_a_worker(task.logical_worker):
                batch = self._fetcher.fetch(task)
        except Exhausted:
            return Ended()
        except Exception as error:
            place = f" (index {self._fetcher.failed_index!r})" if self._fetcher.failed_index is not None else ""
            return Failed(error, traceback.format_exc(), f"the training process{place}")
        description, size, digest = _digested(batch, task.is_of_the_process)
        return Ready(batch, size, digest, description)


def _digested(batch: object, exact: bool) -> tuple[str, int, int]:
    """What a data worker would have said of the batch; nothing for what it could not have sent."""
    try:
        description, buffers = tree.encode(batch, exact)
    except Exception:
        return "", 0, 0
    payload = layout.joined(buffers)
    return description, len(payload), native.digest(payload)
