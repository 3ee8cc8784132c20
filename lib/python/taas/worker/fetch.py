"""Making one batch: what a data worker does with a task."""

from __future__ import annotations

from typing import Any, Callable

from ..code.own_generators import OwnGenerators
from ..code.recipe import Recipe
from ..order import unseeded
from ..order.seeds import seed_all
from ..order.task import Task
from .repetition import SecondReading
from .dealt_shard import DealtShard
from .shard import Exhausted, Shard
from .worker_info import WorkerInfo, active

__all__ = ["Exhausted", "Fetcher"]


class Fetcher:
    """Makes the batches of one recipe. Seeds the process for each: the caller keeps the random states that it needs.

    Where the recipe needs processes, the caller has one Fetcher for each logical worker, in a process of its own.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.failed_index: Any = None
        """The index whose sample raised, when that is known."""
        self.begins: Callable[[int], None] | None = None
        """Called with the place in its batch of each sample that is begun."""
        self._generators = OwnGenerators(recipe)
        self._initialised: WorkerInfo | None = None
        self._shards: dict[tuple[Any, ...], tuple[Any, Shard]] = {}

    def fetch(self, task: Task, stream: Any = None) -> Any:
        """The batch of `task`. Raises what the dataset raises, and Exhausted behind the end of an iterable dataset.

        `stream` names the epoch that the task belongs to: iterators of iterable datasets go on from task to task of it.
        """
        self.failed_index = None
        with unseeded.Repeatable():
            batch = self._fetched(task, stream)
        if self.recipe.copies:
            self.recipe.copies.check()
        return batch

    def _fetched(self, task: Task, stream: Any) -> Any:
        if task.turn >= 0:
            return self._shard(task, stream).batch(task)
        info = self._logical_worker(task)
        seed = task.seeds.of_batch(task.number)
        return self._generators.drawing(lambda: self._collated(task, info, seed), seed)

    def _collated(self, task: Task, info: WorkerInfo, seed: int) -> Any:
        self.failed_index = None
        seed_all(seed)
        with active(info):
            return self.recipe.collate_fn(self._samples(info.dataset, task.indices))

    @property
    def has_own_generators(self) -> bool:
        """True when the dataset has generators that are seeded for each batch."""
        return len(self._generators) > 0

    def _samples(self, dataset: Any, indices: Any) -> Any:
        if not self.recipe.batched:
            return self._sample(dataset, indices)
        if getattr(dataset, "__getitems__", None):
            return dataset.__getitems__(indices)
        return [self._sample(dataset, index, place) for place, index in enumerate(indices)]

    def _sample(self, dataset: Any, index: Any, place: int = 0) -> Any:
        if self.begins:
            self.begins(place)
        try:
            return dataset[index]
        except BaseException:
            self.failed_index = index
            raise

    def _logical_worker(self, task: Task) -> WorkerInfo:
        if self._initialised:
            return self._initialised
        info = WorkerInfo(
            task.logical_worker, self.recipe.num_workers, task.seeds.of_worker(task.logical_worker), self.recipe.dataset
        )
        if self.recipe.worker_init_fn:
            info.initialise(self.recipe.worker_init_fn)
            self._initialised = info
        return info

    def _shard(self, task: Task, stream: Any) -> Shard:
        key = (task.logical_worker, task.dealt)
        its_stream, shard = self._shards.get(key, (None, None))
        if shard is None or its_stream != stream or shard.turn > task.turn:
            shard = self._begun(task)
            self._shards[key] = stream, shard
            if self.recipe.persistent:
                self._initialised = shard.info
        return shard

    def _begun(self, task: Task) -> Shard:
        """At the task's turn. What the loop has had already is read twice, to see that it is the same."""
        again = SecondReading(lambda: self._reader(task).read_to(task.turn)) if task.turn else None
        shard = self._reader(task)
        if again:
            again.compare(shard.read_to(task.turn))
        return shard

    def _reader(self, task: Task) -> Shard:
        return (DealtShard if task.dealt else Shard)(self.recipe, task, self._initialised)
