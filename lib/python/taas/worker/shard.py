"""One logical worker's part of an iterable dataset, in one epoch."""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterator

from ..order.seeds import seed_all
from ..order.task import Facts, Task
from ..sending import batches
from ..sending.recipe import Recipe
from .digest import chained
from .worker_info import WorkerInfo, active


class Exhausted(Exception):
    """There are no more samples."""


class Shard:
    """Walks through a shard from its beginning.

    A task further on is reached by making, and dropping, what lies before.

    The dataset's iter() happens under the seed that there is, and each batch is drawn under its own, so that a walk on
    another machine draws the same. `chain` is a digest of what it has given so far: the rank compares it with what it
    has had.
    """

    def __init__(self, recipe: Recipe, task: Task, worker: Callable[[], WorkerInfo]) -> None:
        """`worker` begins the logical worker, or finds the one that goes on."""
        self.turn = 0
        self.chain = 0
        self._recipe = recipe
        self._worker = task.logical_worker
        self._seeds = task.seeds
        self._info: WorkerInfo | None = None
        self._ended = False
        try:
            self._info = info = worker()
            with active(info):
                self._samples: Iterator[Any] = iter(info.dataset)
        except MemoryError:
            raise
        except Exception as error:
            self._samples = _raising(error)

    def encoded(self, task: Task) -> list[Any]:
        """The batch `task.turn` as batches.encode has it, with the facts behind it.

        At the end, and behind it, there is none. Raises what the dataset raises.
        """
        try:
            while self.turn < task.turn:
                self._skip()
            before = self.chain
            buffers, samples = self._made()
        except BaseException as error:
            if isinstance(error, MemoryError) or not isinstance(error, Exception):
                self.turn = sys.maxsize  # whoever goes on begins the shard anew
            raise
        return [*buffers, Facts(before, self.chain, samples).to_bytes()]

    def _made(self) -> tuple[list[Any], int]:
        try:
            samples = self._draw()
        except Exhausted:
            return batches.encode(None), 0
        with active(self._info):
            batch = self._recipe.collate_fn(samples)
        buffers = batches.encode(batch)
        self._note(batch)
        return buffers, len(samples) if self._recipe.batched else 1

    def _note(self, batch: Any) -> None:
        self.chain = chained(self.chain, batch)

    def _skip(self) -> None:
        """One batch that the loop has had: if it raised, it did so there."""
        try:
            self._leave_out()
        except MemoryError:
            raise
        except Exception:
            pass

    def _leave_out(self) -> None:
        self._made()

    def _draw(self) -> Any:
        turn = self.turn
        self.turn += 1
        return self._samples_of(turn)

    def _samples_of(self, turn: int) -> Any:
        """The next ones, drawn under the seed of the shard's batch `turn`. Raises Exhausted."""
        if self._ended:
            raise Exhausted
        seed_all(self._seeds.of_batch(turn * self._recipe.num_workers + self._worker))
        with active(self._info):
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


def _raising(error: Exception) -> Iterator[Any]:
    """In the place of the first batch; then there are no more."""
    raise error
    yield
