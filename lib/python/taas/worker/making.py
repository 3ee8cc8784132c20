"""Making one batch: what a data worker does with a task."""

from __future__ import annotations

import sys
from typing import Any, Callable

from ..batch import tree
from ..code import pickling
from ..code.own_generators import OwnGenerators
from ..code.recipe import Recipe
from ..dataset import outside
from ..order import unseeded
from ..order.seeds import seed_all
from ..order.task import Task
from .dealt_shard import DealtShard
from .errors import say, short
from .shard import Shard
from .worker_info import WorkerInfo, active


class Copy:
    """A recipe, and what its code has set there.

    Makes batches. Seeds the process for each: the caller keeps the random states that it needs.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.failed_index: Any = None
        """The index whose sample raised, when that is known."""
        self.names_indices = False
        """Each index is written to stderr before its sample is made."""
        self._of_main = _of_main(recipe)
        self._generators = OwnGenerators(recipe)
        self._info: WorkerInfo | None = None
        self._shard: Shard | None = None
        self._stream = -1

    def enter(self) -> None:
        """Its batches are made next: what its code pickles is found in the main module."""
        vars(sys.modules["__main__"]).update(self._of_main)

    def encoded(self, task: Task, stream: int) -> tuple[str, list[Any]]:
        """The batch as tree.encode has it; of a stream as Shard.encoded. Raises what the dataset raises."""
        self.failed_index = None
        with unseeded.Repeatable():
            made = self._walk(task, stream).encoded(task) if task.turn >= 0 else tree.encode(self._batch(task))
        if self.recipe.shared_memory:
            self.recipe.shared_memory.check()
        return made

    def is_past(self, task: Task, stream: int) -> bool:
        """A stream does not go back."""
        return self._shard is not None and self._stream == stream and self._shard.turn > task.turn

    @property
    def has_own_generators(self) -> bool:
        """True when the dataset has generators that are seeded for each batch."""
        return len(self._generators) > 0

    def _walk(self, task: Task, stream: int) -> Shard:
        if self._shard is None or self._stream != stream:
            seed_all(task.seeds.of_worker(task.logical_worker))
            self._shard = (DealtShard if task.dealt else Shard)(self.recipe, task, lambda: self._worker(task))
            self._stream = stream
        return self._shard

    def _batch(self, task: Task) -> Any:
        info, seed = self._worker(task), task.seeds.of_batch(task.number)
        return self._generators.drawing(lambda: self._collated(task, info, seed), seed)

    def _worker(self, task: Task) -> WorkerInfo:
        """The logical worker of the task. With worker_init_fn, which is called first, it is always the same."""
        if self._info:
            return self._info
        recipe = self.recipe
        info = WorkerInfo(
            task.logical_worker, recipe.num_workers, task.seeds.of_worker(task.logical_worker), recipe.dataset
        )
        if recipe.worker_init_fn:
            info.initialise(recipe.worker_init_fn)
        if recipe.keeps:
            self._info = info
        return info

    def _collated(self, task: Task, info: WorkerInfo, seed: int) -> Any:
        self.failed_index = None
        seed_all(seed)
        with active(info):
            return self.recipe.collate_fn(self._samples(info.dataset, task.indices))

    def _samples(self, dataset: Any, indices: Any) -> Any:
        if not self.recipe.batched:
            return self._sample(dataset, indices)
        if getattr(dataset, "__getitems__", None):
            return dataset.__getitems__(indices)
        return [self._sample(dataset, index) for index in indices]

    def _sample(self, dataset: Any, index: Any) -> Any:
        if self.names_indices:
            say(f"index {short(index)} of the dataset")
        try:
            return dataset[index]
        except BaseException:
            self.failed_index = index
            raise


class Copies:
    """What this worker has made of one definition: one copy for all tasks, or one for each logical worker of a loop.

    `load` makes the recipe, for each copy anew.
    """

    def __init__(self, load: Callable[[], Recipe]) -> None:
        first = Copy(load())
        self._of_all = None if first.recipe.keeps else first
        self._first: Copy | None = first
        self._load = load if first.recipe.keeps else lambda: first.recipe
        self._kept: dict[tuple[int, int, Any], dict[int, Copy]] = {}

    def copy_for(self, task: Task, stream: int = 0, owner: int = 0) -> Copy:
        """That which makes `task`, of those of `owner`. `stream` numbers a rank's loops: iterators belong to one."""
        if self._of_all:
            return self._of_all
        kept = self._kept.setdefault(task.worker, {})
        if owner in kept and kept[owner].is_past(task, stream):
            del kept[owner]
        if owner not in kept:
            kept[owner], self._first = self._first or Copy(self._load()), None
        return kept[owner]

    def let_go(self, rank: int, owners: set[int]) -> None:
        """Of all copies for a rank there remain those of `owners`."""
        for (of_rank, *_), kept in self._kept.items():
            for owner in kept.keys() - owners if of_rank == rank else ():
                del kept[owner]


def _of_main(recipe: Recipe) -> dict[str, Any]:
    """The functions and classes of the program's main module that came with the recipe."""
    came: list[Any] = [*pickling.classes_by_value(), *outside.functions_of("__main__", recipe)]
    return {found.__name__: found for found in came if found.__module__ == "__main__" and "." not in found.__qualname__}
