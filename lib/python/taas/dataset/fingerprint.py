"""Whether a loader's dataset, and what is done with its samples, is still what it was in the last epoch."""

from __future__ import annotations

from torch.utils.data import DataLoader

from ..code.recipe import Recipe, recipe_of
from .definition import Definition, pickled
from .snapshot import Snapshot, TooMuch

_QUICK_BYTES = 256 << 20  # to read these takes about as long as to start workers anew
_ANY_BYTES = 1 << 40


class Fingerprint:
    """Follows one loader from epoch to epoch. What cannot be told to be the same counts as changed."""

    def __init__(self) -> None:
        self._last: Definition | None = None
        self._seen: Snapshot | None = None
        self._is_fixed = False
        self.has_just_changed = False
        """Whether the last look found something else than the one before. False where that could not be told."""

    def shares_memory(self, loader: DataLoader, with_forks: bool) -> bool:
        """Whether workers may see what the program writes into the loader's memory from now on.

        Or the program may see what they write.
        """
        if self._seen is None:
            return with_forks or loader.persistent_workers or bool(self._last and self._last.shared)
        return self._seen.shares_memory

    def begins(self, loader: DataLoader) -> None:
        """A loop, with what was looked at last: workers that are persistent go on with that from now on."""
        self._is_fixed = loader.persistent_workers

    def definition(self, loader: DataLoader, is_for_here: bool) -> Definition:
        """What data workers that are other programs are to load, on this machine or anywhere.

        Raises TypeError when the loader cannot be pickled.
        """
        if not self._is_as_before(loader, _ANY_BYTES, as_pickled=True) or self._last is None:
            self._last = pickled(recipe_of(loader), is_for_here)
        return self._last

    def has_changed(self, loader: DataLoader) -> bool:
        """For workers that inherit the dataset: True when they would have to inherit it anew. True at first."""
        return not self._is_as_before(loader, _QUICK_BYTES, as_pickled=False)

    def _is_as_before(self, loader: DataLoader, most_bytes: int, as_pickled: bool) -> bool:
        if self._is_fixed:
            self.has_just_changed = False
            return True
        before, self._seen = self._seen, _snapshot(recipe_of(loader), most_bytes, self._seen, as_pickled)
        is_equal = before is not None and before == self._seen
        self.has_just_changed = not is_equal and before is not None and self._seen is not None
        return is_equal

    def still_holds(self, recipe: Recipe) -> bool:
        """Whether the parts of a loop that has begun are what they were then.

        Not a look that the next one is compared with.
        """
        return self._seen is not None and self._seen == _snapshot(recipe, _QUICK_BYTES, self._seen, as_pickled=False)


def _snapshot(recipe: Recipe, most_bytes: int, before: Snapshot | None, as_pickled: bool) -> Snapshot | None:
    try:
        return Snapshot(list(vars(recipe).values()), most_bytes, before, as_pickled=as_pickled)
    except TooMuch:
        return None
