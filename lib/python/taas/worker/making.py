"""Making one batch: what a data worker does with a task."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Callable

from ..order.seeds import seed_all
from ..order.task import Task, short
from ..sending import batches
from ..sending.generators import Generators
from ..sending.recipe_pickle import Arrived
from ..sending.state import Process
from .dealt_shard import DealtShard
from .shard import Shard
from .worker_info import WorkerInfo, active


class Copy:
    """A recipe, and what its code has set there.

    Makes batches. Seeds the process for each: the caller keeps the random states that it needs.
    """

    def __init__(self, arrived: Arrived) -> None:
        self.recipe = arrived.recipe
        self._names_indices = False
        self._of_main = arrived.of_main
        self._generators = Generators(arrived.generators)
        self._has_set: tuple[Process, Process] | None = None
        self._info: WorkerInfo | None = None
        self._shard: Shard | None = None
        self._stream = -1

    def enter(self) -> None:
        """Its batches are made next, in a process that is as its code has left it."""
        self._of_main.enter()
        if self.recipe.keeps:
            self._found, self._modules = Process.now(), len(sys.modules)
            if self._has_set:
                before, after = self._has_set
                after.follow(before)

    def leave(self) -> None:
        """What its code has set in the process goes, but for what modules add when they are imported."""
        if self.recipe.keeps:
            found, now = self._found, Process.now()
            if len(sys.modules) > self._modules:
                found = found._replace(variables={**now.variables, **found.variables}, path=now.path)
            self._has_set = found, now
            found.follow(now)

    def encoded(self, task: Task, stream: int = 0, is_suspect: bool = False) -> list[Any]:
        """The batch as batches.encode has it; of a stream as Shard.encoded. Raises what the dataset raises.

        Where it `is_suspect`, what is made next is said on stderr.
        """
        self._names_indices = is_suspect
        if not is_suspect:
            return self._encoded(task, stream)
        _say(str(task))
        try:
            return self._encoded(task, stream)
        finally:
            _say(f"{task}: no data worker ended this time")

    def _encoded(self, task: Task, stream: int) -> list[Any]:
        return self._walk(task, stream).encoded(task) if task.turn >= 0 else batches.encode(self._batch(task))

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
        if self._names_indices:
            _say(f"index {short(index)} of the dataset")
        try:
            return dataset[index]
        except BaseException as error:
            with contextlib.suppress(Exception):  # not before Python 3.11
                error.add_note(f"index {index!r} of the dataset")
            raise


class Copies:
    """What this worker has made of one definition: one copy for all tasks, or one for each logical worker of a loop.

    `load` makes the recipe, for each copy anew.
    """

    def __init__(self, load: Callable[[], Arrived]) -> None:
        arrived = load()
        self._first: Copy | None = Copy(arrived)
        self._of_all = None if arrived.recipe.keeps else self._first
        self._load = load if arrived.recipe.keeps else None  # what it was made of is not needed any more
        self._kept: dict[tuple[int, int, Any], dict[int, Copy]] = {}

    def copy_for(self, task: Task, stream: int = 0, owner: int = 0) -> Copy:
        """That which makes `task`, of those of `owner`. `stream` numbers a rank's loops: iterators belong to one."""
        if self._of_all:
            return self._of_all
        kept = self._kept.setdefault(task.worker, {})
        if owner in kept and kept[owner].is_past(task, stream):
            del kept[owner]
        if owner not in kept:
            assert self._load
            kept[owner], self._first = self._first or Copy(self._load()), None
        return kept[owner]

    def let_go(self, rank: int, owners: set[int]) -> None:
        """Of all copies for a rank there remain those of `owners`."""
        for (of_rank, *_), kept in self._kept.items():
            for owner in kept.keys() - owners if of_rank == rank else ():
                del kept[owner]


def _say(line: str) -> None:
    """On stderr, whatever the program's code has made of sys.stderr: the launcher shows a data worker's last line."""
    with contextlib.suppress(OSError):
        os.write(2, f"taas: {line}\n".encode(errors="backslashreplace"))
