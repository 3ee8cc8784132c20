"""Whether a loader's dataset, and what is done with its samples, is still what it was in the last epoch."""

from __future__ import annotations

import sys

from torch.utils.data import DataLoader

from ..code.recipe import Recipe, recipe_of
from .definition import Definition, pickled
from .snapshot import Snapshot, TooMuch


class Fingerprint:
    """Follows one loader from epoch to epoch. What cannot be told to be the same counts as changed."""

    def __init__(self) -> None:
        self._last: Definition | None = None
        self._seen: Snapshot | None = None
        self._is_fixed = False

    def shares_memory(self, loader: DataLoader) -> bool:
        """Whether workers may see what the program writes into the loader's memory from now on.

        Or the program may see what they write.
        """
        if self._seen is None:
            return loader.persistent_workers or bool(self._last and self._last.shared)
        return self._seen.shares_memory

    def begins(self, loader: DataLoader) -> None:
        """A loop, with what was looked at last: workers that are persistent go on with that from now on."""
        self._is_fixed = loader.persistent_workers

    def definition(self, loader: DataLoader, is_for_here: bool) -> Definition:
        """What data workers are to load, on this machine or anywhere.

        Raises TypeError when the loader cannot be pickled.
        """
        if not self._is_as_before(loader) or self._last is None:
            self._last = pickled(recipe_of(loader), is_for_here)
        return self._last

    def _is_as_before(self, loader: DataLoader) -> bool:
        if self._is_fixed:
            return True
        before, self._seen = self._seen, _snapshot(recipe_of(loader), self._seen)
        return before is not None and before == self._seen


def _snapshot(recipe: Recipe, before: Snapshot | None) -> Snapshot | None:
    try:
        return Snapshot(list(vars(recipe).values()), sys.maxsize, before, as_pickled=True)
    except TooMuch:
        return None
