"""The first batches of a loop that has not begun yet: asked for ahead, and thrown away when the loop begins otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator

from torch.utils.data import DataLoader

from . import random_states
from .feed import Opening, Stream
from .foresight import Rehearsal
from .order import ShardOrder
from .recipe import recipe_of
from .seeds import Seeds
from .task import Task

_TASKS_PER_WORKER = 2
_TASKS_AT_MOST = 64


@dataclass
class Anticipated:
    """A stream with tasks that a loop will probably begin with."""

    stream: Stream
    tasks: list[Task]
    digest: str

    def fits(self, opening: Opening) -> bool:
        """False when the dataset is another one by now."""
        return self.digest == opening.digest and bool(self.tasks)


def anticipate(loader: DataLoader, seeds: Seeds, opening: Opening, workers: int, epochs_ahead: int, resumed: bool
               ) -> Anticipated | None:
    """Submits the first tasks of the loop that would begin if it began now. None where they cannot be told.

    No random state is touched. `epochs_ahead` is 1 where the program is expected to call set_epoch before the loop.
    """
    try:
        foreseen = _tasks(loader, seeds, epochs_ahead, resumed)
        tasks = [task for _, task in zip(range(min(_TASKS_AT_MOST, _TASKS_PER_WORKER * workers)), foreseen)]
    except Exception:
        return None
    if not tasks:
        return None
    anticipated = Anticipated(opening(), tasks, opening.digest)
    for task in tasks:
        anticipated.stream.submit_task(task)
    return anticipated


def _tasks(loader: DataLoader, seeds: Seeds, epochs_ahead: int, resumed: bool) -> Iterator[Task]:
    recipe = recipe_of(loader)
    if recipe.iterable:
        order = ShardOrder(recipe, seeds)
        yield from (order.ahead(position) for position in range(_TASKS_AT_MOST))
        return
    rehearsal = Rehearsal(loader, random_states.capture(), resumed, lambda sampler: _advance(sampler, epochs_ahead))
    rehearsal.begin()
    for number, indices in enumerate(rehearsed(rehearsal)):
        yield Task(seeds, number, recipe.logical_worker(number), indices)


def rehearsed(rehearsal: Rehearsal) -> Iterator[Any]:
    """All index batches of a rehearsal, from its first one."""
    while True:
        try:
            indices = rehearsal.ahead(0)
        except StopIteration:
            return
        rehearsal.step()
        yield indices


def _advance(sampler: Any, epochs: int) -> Any:
    inner = getattr(sampler, "sampler", sampler)
    if epochs and hasattr(inner, "set_epoch") and isinstance(getattr(inner, "epoch", None), int):
        inner.set_epoch(inner.epoch + epochs)
    return sampler
