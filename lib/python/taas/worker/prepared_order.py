"""What each rank will most probably ask for in its first loop over a loader that data workers have imported."""

from __future__ import annotations

import contextlib
import copy
import itertools
import sys
from typing import Any, Callable, Iterator

from torch.utils.data import BatchSampler, DataLoader, DistributedSampler

from ..order import random_states, sharing
from ..order.draws import Draws, drawn_freely
from ..order.index_batches import IndexBatches
from ..order.order import ShardOrder
from ..order.seeds import Seeds
from ..order.task import Dealing, Task
from ..sending.recipe import Recipe, recipe_of

_SHARD_TURNS = 1 << 20


def of_ranks(loader: DataLoader, ordinal: int, world_size: int) -> Callable[[], list[Iterator[Task]]]:
    """Makes a row of tasks for each rank, from the seeds and random states that there are now.

    `ordinal` is the place at which ranks register the loader.
    """
    recipe, states = recipe_of(loader), random_states.capture()
    seeds = [Seeds.of_loader(loader, rank, ordinal, epoch=0) for rank in range(world_size)]
    shared = world_size > 1 and sharing.is_noted(loader)

    def rows() -> list[Iterator[Task]]:
        if recipe.iterable:
            return [_of_shards(recipe, of_rank, world_size if shared else 0) for of_rank in seeds]
        return [
            _of_batches(recipe, of_rank, batches)
            for of_rank, batches in zip(seeds, _batches(loader, shared, world_size, states))
        ]

    return rows


def _of_shards(recipe: Recipe, seeds: Seeds, shared_by: int) -> Iterator[Task]:
    dealing = Dealing(seeds.rank, shared_by) if shared_by else None
    order = ShardOrder(recipe, seeds._replace(rank=0) if dealing else seeds, dealing)
    for _ in range(_SHARD_TURNS):
        yield order.next()
        order.take()


def _of_batches(recipe: Recipe, seeds: Seeds, batches: Iterator[Any]) -> Iterator[Task]:
    return (Task(seeds, number, recipe.logical_worker(number), batch) for number, batch in enumerate(batches))


def _batches(
    loader: DataLoader, shared: bool, world_size: int, states: random_states.RandomStates
) -> list[Iterator[Any]]:
    """Drawn once for all ranks, unless each has a sampler of its own."""
    own = loader._index_sampler
    of_ranks = [_of_rank(own, rank, world_size) for rank in range(world_size)]
    if of_ranks[0] is not own:
        return [_drawn(loader, sampler, states) for sampler in of_ranks]
    rows: list[Any] = list(itertools.tee(_drawn(loader, own, states), world_size))
    if not shared:
        return rows
    drop_last = loader.drop_last or getattr(own, "drop_last", False)
    return [iter(IndexBatches(row, rank, world_size, drop_last)) for rank, row in enumerate(rows)]


def _drawn(loader: DataLoader, sampler: Any, states: random_states.RandomStates) -> Iterator[Any]:
    """What a loop that begins with these random states draws; this process' own stay as they are.

    A sampler that is not torch's may change its dataset, of which batches are made here: it has a copy.
    """
    generator = loader.generator
    if drawn_freely(sampler) == 0:
        dataset = copy.copy(loader.dataset)
        sampler, generator = copy.deepcopy((sampler, generator), {id(loader.dataset): dataset})

    @contextlib.contextmanager
    def apart() -> Iterator[None]:
        nonlocal states
        with random_states.kept():
            random_states.restore(states)
            yield
            states = random_states.capture()

    with apart():
        draws = Draws(loader, sampler, generator)
        draws.begin()
    if draws.free == sys.maxsize:
        with contextlib.suppress(StopIteration):
            while True:
                yield draws.next()
    while True:
        try:
            batch = draws.next()
        except StopIteration:
            return
        yield batch
        with apart():
            draws.delivered()


def _of_rank(sampler: Any, rank: int, world_size: int) -> Any:
    """The sampler as the rank has it: a DistributedSampler knows its rank, others are the same everywhere."""
    if type(sampler) is BatchSampler:
        inner = _of_rank(sampler.sampler, rank, world_size)
        return sampler if inner is sampler.sampler else BatchSampler(inner, sampler.batch_size, sampler.drop_last)
    if type(sampler) is not DistributedSampler:
        return sampler
    mine: DistributedSampler[Any] = DistributedSampler(
        sampler.dataset, world_size, rank, sampler.shuffle, sampler.seed, sampler.drop_last
    )
    mine.set_epoch(sampler.epoch)
    return mine
