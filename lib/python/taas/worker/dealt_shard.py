"""One logical worker's part of an iterable dataset that the ranks share: what is dealt to one of them.

All of the shard is read for each rank, and what is not the rank's is dropped: how many batches there are, and how the
last ones are divided, is known to whoever has read them.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, NamedTuple

from ..order.seeds import seed_all
from ..order.index_batches import NOTHING, rounds
from ..order.task import Task
from ..runtime import events
from ..sending.recipe import Recipe
from .digest import chained
from .shard import Exhausted, Shard
from .worker_info import WorkerInfo


class _Single(NamedTuple):
    """A sample of a loader with batch_size=None."""

    sample: Any


class _Raised(NamedTuple):
    """What the dataset raised in place of a batch."""

    error: Exception


class DealtShard(Shard):
    """Gives the rank's batches. Its chain is over all samples that were read: the ranks are to have it in common."""

    def __init__(self, recipe: Recipe, task: Task, worker: Callable[[], WorkerInfo]) -> None:
        super().__init__(recipe, task, worker)
        assert task.dealt
        self._dealing = task.dealt
        self._rounds = rounds(self._all_batches(), task.dealt.ranks, recipe.drop_last)
        self._read = 0
        self._is_over = False

    def _note(self, batch: Any) -> None:
        """It is noted when it is read."""

    def _leave_out(self) -> None:
        self._draw()

    def _draw(self) -> Any:
        """The rank's next samples. Raises Exhausted, and what the dataset has raised in their place."""
        turn = self.turn
        self.turn += 1
        own = NOTHING if self._is_over else self._own(next(self._rounds, None))
        self._is_over = own is NOTHING
        if self._is_over:
            raise Exhausted
        seed_all(self._seeds.of_part(turn * self._recipe.num_workers + self._worker, self._dealing.rank))
        if isinstance(own, _Raised):
            raise own.error
        return own.sample if isinstance(own, _Single) else own

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
            self.chain = chained(self.chain, type(samples.error).__name__ if isinstance(samples, _Raised) else samples)
            if isinstance(samples, _Raised) or self._recipe.batched:
                yield samples
            else:
                yield _Single(samples)
