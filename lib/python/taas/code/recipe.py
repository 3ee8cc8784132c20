"""What a loader's batches are made with: everything of it but the sampler."""

from __future__ import annotations

import multiprocessing
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
    forks: bool
    """Dataset code of the plain loader runs in forks of the program: memory that is shared stays so."""

    persistent: bool = False
    """A worker of the plain loader goes on from loop to loop, and keeps what its code has set there."""

    copies: Any = None
    """In a worker that is no fork: shared_copies.SharedCopies of memory that the program shares, if there is any."""

    @property
    def shards(self) -> int:
        """Into how many parts an iterable dataset splits: as many as the plain loader has workers."""
        return max(1, self.num_workers)

    @property
    def needs_processes(self) -> bool:
        """Whether each logical worker has a process of its own.

        Its code may set something there, or keeps a place in a stream.
        """
        return self.iterable or self.worker_init_fn is not None

    def logical_worker(self, number: int) -> int:
        """Which worker of the plain loader makes the batch `number` of a map-style dataset.

        It is -1 with num_workers=0, whose code sees no worker: get_worker_info() is None.
        """
        return number % self.num_workers if self.num_workers else -1


def recipe_of(loader: DataLoader) -> Recipe:
    """The recipe of `loader` as it is now."""
    return Recipe(
        loader.dataset,
        loader.collate_fn,
        loader.worker_init_fn if loader.num_workers else None,
        loader.batch_sampler is not None,
        loader.batch_size,
        loader.drop_last,
        isinstance(loader.dataset, IterableDataset),
        loader.num_workers,
        not loader.num_workers or start_method(loader) == "fork",
        loader.persistent_workers,
    )


def start_method(loader: DataLoader) -> str:
    """Of the loader, or of the program, which may still choose another one afterwards."""
    if loader.multiprocessing_context is not None:
        return loader.multiprocessing_context.get_start_method()
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
