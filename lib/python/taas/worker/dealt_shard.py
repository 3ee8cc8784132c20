"""One logical worker's part of an iterable dataset that the ranks share: what is dealt to one of them.

All of the shard is read for each rank, and what is not the rank's is dropped: how many batches there are, and how the
last ones are divided, is known to whoever has read them.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any, Iterator, NamedTuple

import numpy

from ..code.recipe import Recipe
from ..order.seeds import seed_all
from ..order.shared_batches import NOTHING, rounds
from ..order.task import Task
from ..runtime import events
from .shard import Exhausted, Shard, add_to_digest
from .worker_info import WorkerInfo, active

_DIGEST_BYTES = 8


class _Single(NamedTuple):
    """A sample of a loader with batch_size=None."""

    sample: Any


class _Raised(NamedTuple):
    """What the dataset raised in place of a batch."""

    error: Exception


class DealtShard(Shard):
    """Gives the rank's batches. Each comes with what all ranks are to have in common: see _with_facts."""

    def __init__(self, recipe: Recipe, task: Task, begun: WorkerInfo | None = None) -> None:
        super().__init__(recipe, task, begun)
        assert task.dealt
        self._dealing = task.dealt
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)  # of all samples that were read
        self._rounds = rounds(self._all_batches(), task.dealt.ranks, recipe.drop_last)
        self._read = 0
        self._is_over = False

    def batch(self, task: Task) -> Any:
        """The batch `task.turn`.

        Behind the last one its place is taken by None, and then there is nothing: raises Exhausted.
        """
        while self.turn < task.turn:
            self._skip()
        samples = self._draw()
        if samples is NOTHING:
            return self._with_facts(0, None)
        count = 1 if isinstance(samples, _Single) else len(samples)
        with active(self.info):
            return self._with_facts(
                count, self._recipe.collate_fn(samples.sample if isinstance(samples, _Single) else samples)
            )

    def _with_facts(self, count: int, batch: Any) -> tuple[Any, Any]:
        """The digest of all samples that were read, and how many are in the batch."""
        digest = int.from_bytes(self._digest.copy().digest(), "little", signed=True)
        return numpy.array([digest, count], dtype=numpy.int64), batch

    def _draw(self) -> Any:
        """The rank's next samples; NOTHING once, at the end."""
        turn = self.turn
        self.turn += 1
        if self._is_over:
            raise Exhausted
        own = self._own(self._next_round())
        self._is_over = own is NOTHING
        seed_all(self._seeds.of_part(turn * self._recipe.num_workers + self._worker, self._dealing.rank))
        if isinstance(own, _Raised):
            raise own.error
        return own

    def _next_round(self) -> list[Any] | None:
        """None at the end. Where there is not enough memory to read on, whoever goes on begins the shard anew."""
        try:
            return next(self._rounds, None)
        except BaseException:
            self.turn = sys.maxsize
            raise

    def _own(self, of_all: list[Any] | None) -> Any:
        if of_all is None:
            return NOTHING
        if of_all[-1] is NOTHING and self._dealing.rank == 0:
            events.remark_once(
                f"rank {of_all.index(NOTHING)} and those behind it get one batch less than the others of a shared "
                "stream: what is left of it cannot be divided; drop_last=True leaves it out"
            )
        return of_all[self._dealing.rank]

    def _all_batches(self) -> Iterator[Any]:
        """Those of all ranks, each drawn under the seed that it would have by itself."""
        while True:
            try:
                samples = self._samples_of(self._read)
            except Exhausted:
                return
            except MemoryError:
                raise
            except Exception as error:
                samples = _Raised(error)
            self._read += 1
            add_to_digest(self._digest, type(samples.error).__name__ if isinstance(samples, _Raised) else samples)
            if isinstance(samples, _Raised) or self._recipe.batched:
                yield samples
            else:
                yield _Single(samples)
