"""Noticing that a dataset changes while a loop is under way: with num_workers=0 the plain loader's next batch shows it."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from . import native
from .frozen import FROZEN, are_equal, are_one

_DEPTH = 4
_MOST_LOOKED_AT = 256
_MOST_ITEMS = 64
_MOST_BYTES = 64 << 10


class Watch:
    """What can be seen of a dataset in some 20 µs: its attributes and those of what it holds, items of short lists and
    dictionaries, lengths of long ones, versions of tensors, contents of arrays of up to 64 KiB. Called before each batch.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._before = _Look(dataset)

    def has_changed(self) -> bool:
        """Since the watch began."""
        return not self._before.is_as(_Look(self._dataset))


class _Look:
    def __init__(self, what: Any) -> None:
        self._plain: list[Any] = []
        self._numbers: list[int] = []
        self._objects: list[Any] = []
        self._seen: set[int] = set()
        self._look(what, _DEPTH)

    def is_as(self, other: _Look) -> bool:
        return (self._numbers == other._numbers and are_one(self._objects, other._objects) and are_equal(self._plain, other._plain))

    def _look(self, value: Any, depth: int) -> None:
        if type(value) in FROZEN:
            self._plain.append(value)
            return
        self._objects.append(value)
        if not depth or id(value) in self._seen or len(self._seen) > _MOST_LOOKED_AT:
            return
        self._seen.add(id(value))
        if isinstance(value, torch.Tensor):
            self._numbers.append(-1 if value.is_inference() else value._version)
        elif isinstance(value, numpy.ndarray):
            self._array(value)
        elif isinstance(value, (list, tuple, dict, set)):
            self._items(value, depth)
        elif not isinstance(value, type):
            for name, attribute in list(getattr(value, "__dict__", {}).items()):
                self._plain.append(name)
                self._look(attribute, depth - 1)

    def _array(self, value: numpy.ndarray) -> None:
        if value.nbytes <= _MOST_BYTES and not value.dtype.hasobject:
            self._numbers.append(native.digest(value.tobytes()))

    def _items(self, value: Any, depth: int) -> None:
        self._numbers.append(len(value))
        if len(value) <= _MOST_ITEMS:
            for item in list(value):
                self._look(item, depth - 1)
            for item in list(value.values()) if isinstance(value, dict) else ():
                self._look(item, depth - 1)
