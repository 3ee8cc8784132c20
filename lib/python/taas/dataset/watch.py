"""Noticing that a dataset changes while a loop is under way: with num_workers=0 the plain loader's next batch shows it."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from ..code.frozen import FROZEN, are_equal, are_one
from ..runtime import native

_DEPTH = 4
_MOST_LOOKED_AT = 256
_MOST_ITEMS = 64
_MOST_BYTES = 64 << 10


class Watch:
    """What can be seen of a dataset in a few µs: its attributes and those of what it holds, items of short lists and
    dictionaries, lengths of long ones, versions of tensors, contents of arrays of up to 64 KiB. Called before each batch.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._before = _Look(dataset)

    def has_changed(self) -> bool:
        """Since the watch began."""
        if self._before.still_holds():
            return False
        now = _Look(self._dataset)
        if not self._before.is_as(now):
            return True
        self._before = now
        return False


class _Look:
    def __init__(self, what: Any) -> None:
        self._plain: list[Any] = []
        self._objects: list[Any] = []
        self._numbered: list[Any] = []
        self._held: list[tuple[Any, list[Any]]] = []
        self._seen: set[int] = set()
        self._look(what, _DEPTH)
        self._numbers = list(map(_number_of, self._numbered))

    def is_as(self, other: _Look) -> bool:
        return (self._numbers == other._numbers and are_one(self._objects, other._objects) and are_equal(self._plain, other._plain))

    def still_holds(self) -> bool:
        """True when all that was found is still in its place: quicker than another look."""
        for holder, items in self._held:  # for each batch: a generator would cost more than the comparisons
            if not are_one(_items_of(holder), items):
                return False
        return self._numbers == list(map(_number_of, self._numbered))

    def _look(self, value: Any, depth: int) -> None:
        if type(value) in FROZEN:
            self._plain.append(value)
            return
        self._objects.append(value)
        if not depth or id(value) in self._seen or len(self._seen) > _MOST_LOOKED_AT:
            return
        self._seen.add(id(value))
        if isinstance(value, (torch.Tensor, numpy.ndarray)):
            self._numbered.append(value)
        elif isinstance(value, (list, tuple, dict, set)):
            self._numbered.append(value)
            if len(value) <= _MOST_ITEMS:
                self._hold(value, depth)
        elif not isinstance(value, type):
            self._hold(value, depth)

    def _hold(self, holder: Any, depth: int) -> None:
        items = _items_of(holder)
        self._held.append((holder, items))
        for item in items:
            self._look(item, depth - 1)


def _items_of(holder: Any) -> list[Any]:
    if isinstance(holder, (list, tuple, set)):
        return list(holder)
    items = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
    return [*items, *items.values()]


def _number_of(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return -1 if value.is_inference() else value._version
    if isinstance(value, numpy.ndarray):
        return native.digest(value.tobytes()) if value.nbytes <= _MOST_BYTES and not value.dtype.hasobject else 0
    return len(value)
