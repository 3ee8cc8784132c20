"""The first batches of a loop that has not begun yet: asked for ahead, and thrown away when the loop begins otherwise.

Of datasets with indices alone: a stream that is begun and thrown away may have taken samples from elsewhere, which
nobody gets then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch.utils.data import DataLoader

from ..code.recipe import recipe_of
from ..order.sampler_prediction import PredictionBudget, first_batches
from ..order.seeds import Seeds
from ..order.task import Task
from .feed import Feed, Opening, Stream

_TASKS_PER_WORKER = 2
_TASKS_AT_MOST = 64


@dataclass
class _Prefetched:
    stream: Stream
    tasks: list[Task]
    digest: str


class Prefetch:
    """Asks for the beginning of one loader's next loop, until it was wrong three times. Touches no random state."""

    def __init__(self) -> None:
        self._budget = PredictionBudget()
        self._waiting: _Prefetched | None = None
        self._sampler_epoch: Any = None
        self._step = 1

    @property
    def is_open(self) -> bool:
        """False while there is nothing more to ask for: it has been, or was wrong too often."""
        return bool(self._budget) and self._waiting is None

    def ask(
        self, loader: DataLoader, seeds: Seeds, opening: Opening, workers: int, resumed: bool, is_first: bool
    ) -> None:
        """Submits the first tasks of the loop that would begin if it began now; nothing where these cannot be told.

        A program that has called set_epoch before is expected to do so again, except before its first loop.
        """
        if not self.is_open:
            return
        count = min(_TASKS_AT_MOST, _TASKS_PER_WORKER * workers)
        try:
            tasks = _tasks(loader, seeds, 0 if is_first else self._step, resumed, count)
        except Exception:  # a sampler that cannot be copied
            return
        self._waiting = _Prefetched(opening(), tasks, opening.digest)
        for task in tasks:
            self._waiting.stream.submit_task(task)

    def notice(self, loader: DataLoader) -> None:
        """A loop begins: learns by how much the sampler's epoch is set further for each."""
        now, before = getattr(loader.sampler, "epoch", None), self._sampler_epoch
        self._sampler_epoch = now
        self._step = now - before if isinstance(before, int) and isinstance(now, int) else 1

    def feed(self, order: Any, opening: Opening) -> Feed:
        """For the loop that begins: goes on with what was asked for, if the dataset is the same still."""
        waiting, self._waiting = self._waiting, None
        if waiting and waiting.tasks and waiting.digest == opening.digest:
            return Feed(order, opening, waiting.stream, waiting.tasks, self._budget.mistaken)
        if waiting:
            waiting.stream.close()
        return Feed(order, opening)

    def close(self) -> None:
        """There will be no loop."""
        if self._waiting:
            self._waiting.stream.close()
        self._waiting = None


def _tasks(loader: DataLoader, seeds: Seeds, epochs_ahead: int, resumed: bool, count: int) -> list[Task]:
    recipe = recipe_of(loader)
    batches = first_batches(loader, count, resumed, lambda sampler: _advance(sampler, epochs_ahead))
    return [Task(seeds, number, recipe.logical_worker(number), indices) for number, indices in enumerate(batches)]


def _advance(sampler: Any, epochs: int) -> Any:
    inner = getattr(sampler, "sampler", sampler)
    if epochs and hasattr(inner, "set_epoch") and isinstance(getattr(inner, "epoch", None), int):
        inner.set_epoch(inner.epoch + epochs)
    return sampler
