"""The index batches of an epoch, drawn from the loader's own sampler: each of them is certain.

torch's loader draws prefetch_factor * num_workers of them in iter(), and one more at the end of each next(). Here they
are drawn at these instants too, with num_workers=0 as with one worker, so that the process' random states are at any
time what they would have been; or earlier, where nobody can tell.
"""

from __future__ import annotations

import collections
import sys
from typing import Any, Iterator

import numpy
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from .index_batches import IndexBatches

_PREFETCH_FACTOR = 2  # torch's, of loaders with workers
_ALL = sys.maxsize
_SETTLED = (SequentialSampler, WeightedRandomSampler, DistributedSampler, list, tuple, range)
NOT_YET = object()
_LISTS = (list, tuple, range, torch.Tensor, numpy.ndarray)


def drawn_freely(sampler: Any) -> int:
    """How many index batches may be drawn at any time once the first one is; sys.maxsize for all, and their end.

    torch's samplers touch random states in their first draw only; but a RandomSampler draws again from a generator that
    it was given when it comes to what is no whole batch, or to its end, or draws with replacement. Of all others: 0.
    """
    kind = type(sampler)
    if kind is IndexBatches:
        free = drawn_freely(sampler.inner)
        is_whole = free == _ALL or sampler.ranks == 1
        return free if is_whole else max(0, free // sampler.ranks - 1)  # it reads one round ahead
    if kind is BatchSampler:
        free = drawn_freely(sampler.sampler)
        return free if free == _ALL else free // sampler.batch_size
    if kind is SubsetRandomSampler:
        return _ALL if type(sampler.indices) in _LISTS else 0
    if kind is RandomSampler:
        is_once = not sampler.replacement and sampler.num_samples == len(sampler.data_source)
        return _ALL if sampler.generator is None else sampler.num_samples if is_once else 0
    return _ALL if kind in _SETTLED else 0


class Draws:
    """Of one epoch, from `sampler`. The workers' base seed is drawn from `generator`.

    `goes_on` is True for a further epoch with persistent_workers: its workers keep their base seed.
    """

    def __init__(
        self,
        loader: DataLoader,
        sampler: Any,
        generator: torch.Generator | None,
        goes_on: bool = False,
    ) -> None:
        self.torchs_window = max(1, loader.num_workers) * (loader.prefetch_factor or _PREFETCH_FACTOR)
        """How many batches torch has under way."""
        self.free = drawn_freely(sampler)
        self._count = 0
        self._torchs_count = 0
        self._has_ended = False
        self._waiting: collections.deque[Any] = collections.deque()
        self._iterator: Iterator[Any] = iter(sampler)
        self._again = None if goes_on else sampler
        if not goes_on:
            torch.empty((), dtype=torch.int64).random_(generator=generator)  # the workers' base seed

    def begin(self) -> None:
        """What iter() does once its workers are started: it asks the sampler anew, and draws."""
        if self._again is not None:
            self._iterator, self._again = iter(self._again), None
        self._follow(self.torchs_window)

    def delivered(self) -> None:
        """The draw at the end of next()."""
        self._follow(1)

    def next(self) -> Any:
        """The next batch; NOT_YET where torch has not drawn it so far. Raises StopIteration at the end of the epoch."""
        if not self._waiting and self._count < self.free and not self._has_ended:
            self._draw()
        if self._waiting:
            return self._waiting.popleft()
        if self._has_ended:
            raise StopIteration
        return NOT_YET

    def _follow(self, count: int) -> None:
        for _ in range(count):
            self._torchs_count += 1
            if self._count < self._torchs_count:
                self._draw()

    def _draw(self) -> None:
        """Once, whether there was something before or not: so does torch."""
        try:
            indices = next(self._iterator)
        except StopIteration:
            self._has_ended = True
            return
        self._has_ended = False
        self._count += 1
        self._waiting.append(indices)
