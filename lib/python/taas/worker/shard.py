"""One logical worker's part of an iterable dataset, in one epoch."""

from __future__ import annotations

import contextlib
import hashlib
import io
import pickle
from typing import Any, Iterator

from ..batch import tree
from ..code.recipe import Recipe
from ..order.seeds import seed_all
from ..order.task import Task
from .worker_info import WorkerInfo, active


class Exhausted(Exception):
    """The task lies behind the end of its shard."""


class Shard:
    """Walks through a shard from its beginning.

    A task further on is reached by drawing, and dropping, what lies before.

    The dataset's first iter() happens under the shard's seed, and each batch is drawn under its own, so that a walk on
    another machine draws the same.
    """

    def __init__(self, recipe: Recipe, task: Task, begun: WorkerInfo | None = None) -> None:
        """`begun`: the worker goes on from an earlier loop."""
        self.turn = 0
        self._recipe = recipe
        self._worker = task.logical_worker
        self._seeds = task.seeds
        seed = task.seeds.of_worker(task.logical_worker)
        self.info = begun or WorkerInfo(self._worker, recipe.num_workers, seed, recipe.dataset)
        self._ended = False
        seed_all(seed)
        if recipe.worker_init_fn and not begun:
            self.info.initialise(recipe.worker_init_fn)
        with active(self.info):
            self._samples: Iterator[Any] = iter(self.info.dataset)

    def batch(self, task: Task) -> Any:
        """The batch `task.turn`. Raises Exhausted at the end, and what the dataset raises."""
        while self.turn < task.turn:
            self._skip()
        samples = self._draw()
        with active(self.info):
            return self._recipe.collate_fn(samples)

    def read_to(self, turn: int) -> bytes:
        """Draws what lies before `turn`; 16 bytes that tell its samples from others."""
        digest = hashlib.blake2b(digest_size=16)
        with contextlib.suppress(Exhausted):
            while self.turn < turn:
                add_to_digest(digest, self._skip())
        return digest.digest()

    def _skip(self) -> Any:
        """One batch that the loop has had: if it raised, it did so there."""
        try:
            return self._draw()
        except Exhausted:
            raise
        except Exception as error:
            return type(error).__name__

    def _draw(self) -> Any:
        turn = self.turn
        self.turn += 1
        return self._samples_of(turn)

    def _samples_of(self, turn: int) -> Any:
        """The next ones, drawn under the seed of the shard's batch `turn`."""
        if self._ended:
            raise Exhausted
        seed_all(self._seeds.of_batch(turn * self._recipe.num_workers + self._worker))
        with active(self.info):
            samples = list(self._some()) if self._recipe.batched else self._one()
        if self._recipe.batched and self._too_few(samples):
            raise Exhausted
        return samples

    def _some(self) -> Iterator[Any]:
        for _ in range(self._recipe.batch_size or 1):
            try:
                yield next(self._samples)
            except StopIteration:
                self._ended = True
                return

    def _one(self) -> Any:
        try:
            return next(self._samples)
        except StopIteration:
            self._ended = True
            raise Exhausted from None

    def _too_few(self, samples: list[Any]) -> bool:
        return not samples or (self._recipe.drop_last and self._ended)


def add_to_digest(digest: Any, samples: Any) -> None:
    """What cannot be sent is not compared."""
    with contextlib.suppress(Exception):
        description, buffers = tree.encode(samples)
        if tree.is_pickled(description):
            digest.update(_pickled_by_value(samples))
            return
        digest.update(description.encode())
        for buffer in buffers:
            digest.update(buffer)


def _pickled_by_value(samples: Any) -> bytes:
    """Does not tell whether two equal parts are one and the same object: that may come of what is cached already."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file, protocol=5)
    pickler.fast = True
    pickler.dump(samples)
    return file.getvalue()
