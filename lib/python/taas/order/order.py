"""An epoch as a row of tasks."""

from __future__ import annotations

import collections
from typing import Any, Callable

from torch.utils.data import DataLoader

from ..sending.recipe import Recipe, recipe_of
from .common_order import CommonStream
from .draws import NOT_YET, Draws
from .index_batches import IndexBatches
from .order_digest import AnotherOrder
from .seeds import Seeds
from .task import Dealing, Facts, Task


class Unrepeatable(RuntimeError):
    """A stream has given other samples than before."""

    def __init__(self) -> None:
        super().__init__(
            "taas: this stream gives other samples when it is read again, so it cannot go on where a data worker "
            "died, or from a state_dict: seed its generators from torch.initial_seed(), not from the operating system"
        )


class MapOrder:
    """Tasks of a map-style dataset: the index sampler's batches, numbered from 0.

    Made in iter() of the loader, which calls `begin` once the dataset is taken as it is.
    """

    is_over = False
    to_drop = 0

    def __init__(self, loader: DataLoader, seeds: Seeds, goes_on: bool) -> None:
        self._recipe = recipe_of(loader)
        self._seeds = seeds
        self._under_way = self._taken = 0
        sampler = loader._index_sampler
        self._sampler = sampler if isinstance(sampler, IndexBatches) else IndexBatches(sampler)
        self._draws = Draws(loader, self._sampler, loader.generator, goes_on)
        self.window = None if self._draws.free else self._draws.torchs_window
        """How many tasks can be under way, where that is up to torch."""

    def begin(self) -> None:
        """Makes the draws of the plain loader's iter() that come after its workers were started."""
        self._draws.begin()
        self._digest = self._sampler.digest

    def next(self) -> Task | None:
        """One more task; None where torch has not drawn it so far. Raises StopIteration at the end of the epoch."""
        indices = self._draws.next()
        if indices is NOT_YET:
            return None
        number = self._taken + self._under_way
        self._under_way += 1
        return Task(self._seeds, number, self._recipe.logical_worker(number), indices)

    def take(self) -> None:
        """The loop is at the first task that is under way."""
        self._under_way -= 1
        self._taken += 1

    def delivered(self, task: Task, facts: Facts | None) -> None:
        """The loop has what came of the task that it took last."""
        self._draws.delivered()

    def position(self) -> dict[str, Any]:
        """Where the epoch is, for state_dict."""
        return self._digest.position(self._taken, self._sampler.ranks)

    def digest(self) -> str:
        """Of all batches that were drawn."""
        return self._digest.text()

    def skip_to(self, position: dict[str, Any]) -> None:
        """Draws, and drops, what the loop has had before it was interrupted.

        Raises AnotherOrder where that is not the same.
        """
        check(position, self._sampler.ranks, "batch")
        for _ in range(position["batch"]):
            try:
                self.next()
            except StopIteration:
                raise AnotherOrder from None
            self.take()
            self._draws.delivered()
        self._digest.expect_position(position)


class ShardOrder:
    """Tasks of an iterable dataset: its shards take turns, and one that has ended is left out from then on.

    With `dealing` a turn of a shard is the next batch of those that are dealt to one rank. `compare` is called with the
    digest of what was read for a task, and whether it is the shard's last.
    """

    window = None

    def __init__(
        self,
        recipe: Recipe,
        seeds: Seeds,
        dealing: Dealing | None = None,
        compare: Callable[[Task, int, bool], None] | None = None,
    ) -> None:
        self._recipe = recipe
        self._seeds = seeds
        self._dealing = dealing
        self._compare = compare
        self._chains: list[int | None] = [0] * recipe.num_workers  # of each shard; None: not known
        self._ended: set[int] = set()
        self._under_way: collections.deque[tuple[int, int]] = collections.deque()
        self._next = (0, 0)
        self._batches = 0
        self.to_drop = 0
        """How many batches a plain loop had before it was interrupted: these are made again."""

    @property
    def is_over(self) -> bool:
        """All shards have ended."""
        return len(self._ended) == self._recipe.num_workers

    def begin(self) -> None:
        """Nothing is drawn for shards."""

    def next(self) -> Task:
        """One more task. Raises StopIteration when all shards have ended."""
        while not self.is_over:
            turn, shard = place = self._next
            self._next = (turn, shard + 1) if shard + 1 < self._recipe.num_workers else (turn + 1, 0)
            if shard not in self._ended:
                self._under_way.append(place)
                return Task(self._seeds, turn * self._recipe.num_workers + shard, shard, turn=turn, dealt=self._dealing)
        raise StopIteration

    def take(self) -> None:
        """The loop is at the first task that is under way."""
        self._under_way.popleft()
        self._batches += 1

    def delivered(self, task: Task, facts: Facts | None) -> None:
        """The loop has what came of the task that it took last; without facts the dataset raised.

        Raises Unrepeatable where what came before it is not what this loop has had.
        """
        shard = task.logical_worker
        if facts is None:
            self._chains[shard] = None
            return
        if self._chains[shard] not in (None, facts.before):
            raise Unrepeatable
        self._chains[shard] = facts.after
        if self._compare and shard not in self._ended:
            self._compare(task, facts.after, not facts.samples)
        if not facts.samples:
            self._ended.add(shard)
            self._batches -= 1

    def position(self) -> dict[str, Any]:
        """Where the epoch is, for state_dict. A plain loop goes on by the number of batches alone."""
        batches = self._batches + self.to_drop
        if self.to_drop:
            return {"batches": batches, "ranks": self._ranks}
        turn, shard = self._under_way[0] if self._under_way else self._next
        return {
            "turn": turn,
            "shard": shard,
            "ended": sorted(self._ended),
            "chains": list(self._chains),
            "batches": batches,
            "ranks": self._ranks,
        }

    def digest(self) -> None:
        """Nothing is drawn."""

    @property
    def _ranks(self) -> int:
        return self._dealing.ranks if self._dealing else 1

    def skip_to(self, position: dict[str, Any]) -> None:
        """Goes on from `position`: shards find their way to it by drawing what lies before."""
        check(position, self._ranks, "chains" if "turn" in position else "batches")
        if "turn" not in position:
            self.to_drop = position["batches"]
            return
        if (shards := len(position["chains"])) != self._recipe.num_workers:
            raise ValueError(
                f"taas: load_state_dict: this state was saved in the middle of a loop over {shards} shards of a "
                f"stream, and now there are {self._recipe.num_workers}: load it with num_workers={shards}, or load a "
                "state of the end of a loop"
            )
        self._batches = position["batches"]
        self._ended = set(position["ended"])
        self._chains = list(position["chains"])
        self._next = (position["turn"], position["shard"])


def check(position: dict[str, Any], ranks: int, has: str) -> None:
    """Raises ValueError for a position that has no `has`, and for one in what another number of ranks shared."""
    if has not in position:
        raise ValueError(
            "taas: load_state_dict: this state was saved in the middle of a loop over another kind of dataset, or by "
            "another release of taas: load a state of the end of a loop"
        )
    if (saved := position.get("ranks", 1)) != ranks:
        raise ValueError(
            f"taas: load_state_dict: this state was saved in the middle of a loop that {saved} ranks shared, and now "
            f"there are {ranks}: load it with {saved}, or load a state of the end of a loop"
        )


def order_of(
    loader: DataLoader, seeds: Seeds, goes_on: bool, common: CommonStream | None = None
) -> MapOrder | ShardOrder:
    """The epoch that begins now: makes the draws of the plain loader's iter() from before its workers are started."""
    recipe = recipe_of(loader)
    if not recipe.iterable:
        return MapOrder(loader, seeds, goes_on)
    Draws(loader, loader._index_sampler, loader.generator, goes_on)
    return ShardOrder(recipe, seeds, common.dealing, common.read) if common else ShardOrder(recipe, seeds)
