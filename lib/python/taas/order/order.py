"""An epoch as a row of tasks: which is next for certain, and which will most probably follow."""

from __future__ import annotations

import collections
from typing import Any

from torch.utils.data import DataLoader

from ..code.recipe import Recipe, recipe_of
from .indices import Indices
from .order_digest import AnotherOrder
from .sampler_prediction import PredictionBudget
from .seeds import Seeds
from .task import Dealing, Task


class MapOrder:
    """Tasks of a map-style dataset: the index sampler's batches, numbered from 0."""

    to_drop = 0

    def __init__(self, loader: DataLoader, seeds: Seeds, budget: PredictionBudget, resumed: bool) -> None:
        self._recipe = recipe_of(loader)
        self._seeds = seeds
        self._number = 0
        self._indices = Indices(loader, budget, resumed)

    def begin(self) -> None:
        """Makes the draws of the plain loader's iter() that come after its workers were started."""
        self._indices.begin()

    def certain(self) -> Task:
        """The task of this next(). Raises StopIteration at the end of the epoch."""
        task = self._task(self._number, self._indices.certain())
        self._number += 1
        return task

    def ahead(self, position: int) -> Task:
        """The task `position` places behind the next one. Raises StopIteration and draws.Unknown."""
        return self._task(self._number + position, self._indices.ahead(position))

    def delivered(self) -> None:
        """The loop has the batch of the last certain task."""
        self._indices.delivered()

    def ended(self, task: Task) -> None:
        """A map-style dataset has no shards that end."""

    def mistaken(self) -> None:
        """What `ahead` said was not so."""
        self._indices.mistaken()

    def position(self) -> dict[str, Any]:
        """Where the epoch is, for state_dict."""
        digest = self._indices.digest
        return {
            "batch": self._number,
            "ranks": self._indices.ranks,
            "taken": digest.state_behind(self._number),
            "order": digest.state(),
        }

    def digest(self) -> str:
        """Of all batches that were drawn."""
        return self._indices.digest.text()

    def skip_to(self, position: dict[str, Any]) -> None:
        """Draws, and drops, what the loop has had before it was interrupted.

        Raises AnotherOrder where that is not the same.
        """
        check(position, self._indices.ranks, "batch")
        for _ in range(position["batch"]):
            try:
                self.certain()
            except StopIteration:
                raise AnotherOrder from None
            self.delivered()
        self._indices.digest.expect(tuple(position["taken"]))
        self._indices.digest.expect(tuple(position["order"]))

    def _task(self, number: int, indices: Any) -> Task:
        return Task(self._seeds, number, self._recipe.logical_worker(number), indices)


class ShardOrder:
    """Tasks of an iterable dataset: its shards take turns, and one that has ended is left out from then on.

    With `dealing` a turn of a shard is the next batch of those that are dealt to one rank.
    """

    def __init__(self, recipe: Recipe, seeds: Seeds, dealing: Dealing | None = None) -> None:
        self._recipe = recipe
        self._seeds = seeds
        self._dealing = dealing
        self._ended: set[int] = set()
        self._turns: collections.deque[tuple[int, int]] = collections.deque()
        self._next = (0, 0)
        self._batches = 0
        self.to_drop = 0
        """How many batches a plain loop had before it was interrupted: these are made again."""

    def begin(self) -> None:
        """Nothing is drawn for shards."""

    def certain(self) -> Task:
        """The task of this next(). Raises StopIteration when all shards have ended."""
        if len(self._ended) == self._recipe.num_workers:
            raise StopIteration
        self.ahead(0)
        self._batches += 1
        return self._task(self._turns.popleft())

    def ahead(self, position: int) -> Task:
        """The task `position` places behind the next one."""
        while len(self._turns) <= position:
            turn, shard = self._next
            self._next = (turn, shard + 1) if shard + 1 < self._recipe.num_workers else (turn + 1, 0)
            if shard not in self._ended:
                self._turns.append((turn, shard))
            elif len(self._ended) == self._recipe.num_workers:
                raise StopIteration
        return self._task(self._turns[position])

    def delivered(self) -> None:
        """The loop has the batch of the last certain task."""

    def ended(self, task: Task) -> None:
        """The task's shard has ended."""
        self._ended.add(task.logical_worker)
        self._batches -= 1

    def mistaken(self) -> None:
        """Turns are never predicted wrongly."""

    def position(self) -> dict[str, Any]:
        """Where the epoch is, for state_dict. A plain loop goes on by the number of batches alone."""
        batches = self._batches + self.to_drop
        if self.to_drop:
            return {"batches": batches, "ranks": self._ranks}
        turn, shard = self._turns[0] if self._turns else self._next
        ended = sorted(self._ended)
        return {"turn": turn, "shard": shard, "ended": ended, "batches": batches, "ranks": self._ranks}

    def digest(self) -> None:
        """Nothing is drawn."""

    @property
    def _ranks(self) -> int:
        return self._dealing.ranks if self._dealing else 1

    def skip_to(self, position: dict[str, Any]) -> None:
        """Goes on from `position`: shards find their way to it by drawing what lies before."""
        check(position, self._ranks, "batches")
        if "turn" not in position:
            self.to_drop = position["batches"]
            return
        self._batches = position["batches"]
        self._ended = set(position["ended"])
        self._next = (position["turn"], position["shard"])
        self._turns.clear()

    def _task(self, place: tuple[int, int]) -> Task:
        turn, shard = place
        return Task(self._seeds, turn * self._recipe.num_workers + shard, shard, turn=turn, dealt=self._dealing)


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
    loader: DataLoader, seeds: Seeds, budget: PredictionBudget, resumed: bool, dealing: Dealing | None = None
) -> MapOrder | ShardOrder:
    """The epoch that begins now: makes the draws of the plain loader's iter() from before its workers are started."""
    recipe = recipe_of(loader)
    if not recipe.iterable:
        return MapOrder(loader, seeds, budget, resumed)
    Indices(loader, budget, resumed).begin()
    return ShardOrder(recipe, seeds, dealing)
