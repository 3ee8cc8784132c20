"""Whether a loader's dataset is still what it was in the last epoch."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from torch.utils.data import DataLoader

from . import native
from .definition import Definition, pickled
from .recipe import Recipe, recipe_of

_CHEAP_BYTES = 4 << 20
_DIGESTED_BYTES = 64 << 20
_DEPTH = 4
_ITEMS = 256


def surface(value: Any, depth: int = _DEPTH) -> Any:
    """A comparable view of what is easily seen of `value`: plain attributes, lengths, contents of arrays, versions of tensors."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, torch.Tensor):
        return id(value), value._version
    if isinstance(value, numpy.ndarray):
        return id(value), _digest_of(value)
    if isinstance(value, (list, tuple)) and depth:
        return id(value), len(value), tuple(surface(item, depth - 1) for item in value[:_ITEMS])
    if isinstance(value, dict) and depth:
        return id(value), len(value), tuple((repr(key), surface(item, depth - 1)) for key, item in list(value.items())[:_ITEMS])
    inner = getattr(value, "__dict__", None)
    if inner and depth and not isinstance(value, type):
        return id(value), surface(inner, depth - 1)
    return id(value)


def _digest_of(array: numpy.ndarray) -> int:
    few = array if array.nbytes <= _DIGESTED_BYTES else array[:: 1 + array.nbytes // _DIGESTED_BYTES]
    return native.digest(few.tobytes()) if not array.dtype.hasobject else 0


def _size(value: Any, depth: int = _DEPTH) -> int:
    """About how many bytes `value` is when pickled: what its first levels hold."""
    if isinstance(value, (torch.Tensor, numpy.ndarray)):
        return value.nbytes
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, (list, tuple, dict)) and depth:
        items = list(value.values() if isinstance(value, dict) else value[:_ITEMS])[:_ITEMS]
        return sum(_size(item, depth - 1) + 8 for item in items) * max(1, len(value) // max(1, len(items)))
    return _size(vars(value), depth - 1) if hasattr(value, "__dict__") and depth and not isinstance(value, type) else 8


class Fingerprint:
    """Follows one loader from epoch to epoch. What is pickled is kept until something of it changes.

    Of a dataset above 4 MiB only the surface is compared; a smaller one is pickled again each time.
    """

    def __init__(self) -> None:
        self._last: Definition | None = None
        self._mark: Any = None

    def definition(self, loader: DataLoader) -> Definition:
        """What data workers that are other programs are to load. Raises TypeError when the loader cannot be pickled."""
        recipe = recipe_of(loader)
        if self._last and (loader.persistent_workers or self._mark == surface(vars(recipe)) and not _is_small(recipe)):
            return self._last
        self._last, self._mark = pickled(recipe), surface(vars(recipe))
        return self._last

    def has_changed(self, loader: DataLoader) -> bool:
        """For workers that inherit the dataset: True when they would have to inherit it anew. True at first."""
        recipe = recipe_of(loader)
        before, self._mark = self._mark, _digest_if_small(recipe) or surface(vars(recipe))
        return before is None or (before != self._mark and not loader.persistent_workers)


def _is_small(recipe: Recipe) -> bool:
    return _size(recipe.dataset) <= _CHEAP_BYTES


def _digest_if_small(recipe: Recipe) -> str | None:
    try:
        return pickled(recipe).digest if _is_small(recipe) else None
    except TypeError:
        return None
