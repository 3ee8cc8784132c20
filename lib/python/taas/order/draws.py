"""The plain loader's own draws: which random numbers it takes, and at which instants.

torch's loader draws prefetch_factor * num_workers index batches in iter(), and one more at the end of each next(). A
registered loader draws at these instants too, so that the process' random states are at any time what they would have
been; with num_workers=0 as with one worker.
"""

from __future__ import annotations

import collections
from typing import Any, Callable, Iterator

import torch
from torch.utils.data import DataLoader


_PREFETCH_FACTOR = 2  # torch's, of loaders with workers


class Unknown(Exception):
    """Nothing is known so far ahead."""


class PlainDraws:
    """Index batches of one epoch, drawn from `sampler` when the plain loader would have drawn them.

    `resumed` is True for a further epoch with persistent_workers: its workers keep their base seed. `note` is told of
    each batch that is drawn.
    """

    def __init__(
        self,
        loader: DataLoader,
        sampler: Any,
        generator: torch.Generator | None,
        resumed: bool = False,
        note: Callable[[Any], None] = lambda indices: None,
    ) -> None:
        self._note = note
        self._lookahead = max(1, loader.num_workers) * (loader.prefetch_factor or _PREFETCH_FACTOR)
        self._drawn: collections.deque[Any] = collections.deque()
        self._begun = False
        self._ended = False
        self._iterator: Iterator[Any] = iter(sampler)
        self._again = None if resumed else sampler
        if not resumed:
            torch.empty((), dtype=torch.int64).random_(generator=generator)  # the workers' base seed

    def begin(self) -> None:
        """What iter() does once its workers are started: it asks the sampler anew, and draws."""
        if self._again is not None:
            self._iterator, self._again = iter(self._again), None
        for _ in range(self._lookahead):
            self._draw()

    @property
    def has_begun(self) -> bool:
        """True when the sampler has been asked for something: the random choice of most samplers is made then."""
        return self._begun

    def after(self) -> None:
        """The draw at the end of next()."""
        self._draw()

    def take(self) -> Any:
        """The batch that this next() is to give. Raises StopIteration at the end of the epoch."""
        if not self._drawn:
            raise StopIteration
        return self._drawn.popleft()

    def ahead(self, position: int) -> Any:
        """The batch that is `position` places behind the next one, drawn now if need be.

        Raises StopIteration at the end.
        """
        while len(self._drawn) <= position and not self._ended:
            self._draw()
        if len(self._drawn) <= position:
            raise StopIteration
        return self._drawn[position]

    def known(self, position: int) -> Any:
        """The same without drawing: raises Unknown for what the plain loader has not drawn yet."""
        if len(self._drawn) <= position:
            raise StopIteration if self._ended else Unknown
        return self._drawn[position]

    def _draw(self) -> None:
        self._begun = True
        try:
            indices = next(self._iterator)
        except StopIteration:
            self._ended = True
            return
        self._drawn.append(indices)
        self._note(indices)
