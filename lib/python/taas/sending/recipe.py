"""What a loader's batches are made with: everything of it but the sampler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from torch.utils.data import DataLoader, IterableDataset


@dataclass
class Recipe:
    """The loader's dataset and what is done with its samples.

    `batch_size` is None when samples come one by one, and for loaders with a batch sampler of their own.
    """

    dataset: Any
    collate_fn: Callable[[Any], Any]
    worker_init_fn: Callable[[int], None] | None
    batched: bool
    batch_size: int | None
    drop_last: bool
    iterable: bool
    num_workers: int
    """Of logical workers: a loader with num_workers=0 has one."""

    persistent: bool = False
    """A worker of the plain loader goes on from loop to loop, and keeps what its code has set there."""

    @property
    def keeps(self) -> bool:
        """Whether each logical worker has a copy: what worker_init_fn has set there, or a place in a stream."""
        return self.iterable or self.worker_init_fn is not None

    def logical_worker(self, number: int) -> int:
        """Which worker of the plain loader makes the batch `number` of a map-style dataset."""
        return number % self.num_workers


def recipe_of(loader: DataLoader) -> Recipe:
    """The recipe of `loader` as it is now."""
    return Recipe(
        loader.dataset,
        loader.collate_fn,
        loader.worker_init_fn,
        loader.batch_sampler is not None,
        loader.batch_size,
        loader.drop_last,
        isinstance(loader.dataset, IterableDataset),
        max(1, loader.num_workers),
        loader.persistent_workers,
    )
