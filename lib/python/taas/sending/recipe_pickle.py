"""A loader's parts as a pickle, with large memory beside it: the only look that is taken at them.

Tensors that share memory in the program share it in the worker.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
from multiprocessing.managers import BaseProxy
from typing import Any, NamedTuple, Sequence

import numpy
import torch

from . import by_value, files, generators
from .by_value import OfMain
from .recipe import Recipe
from .tensors import Tensors

_BESIDE_BYTES = 64 << 10
"""Less memory goes in the pickle."""


class Refused(TypeError):
    """An object that stays in its process; the text says why, and the way out."""


class Sent(NamedTuple):
    """`beside` are the buffers that the pickle leaves out, in order; `generators` those that it has met."""

    pickle: bytes
    beside: list[pickle.PickleBuffer]
    generators: list[Any]


class Arrived(NamedTuple):
    """A recipe in a data worker, with what came along."""

    recipe: Recipe
    generators: list[Any]
    of_main: OfMain


def dumped(recipe: Recipe) -> Sent:
    """Raises Refused, and what pickling raises."""
    file = io.BytesIO()
    pickler = _Pickler(file, recipe)
    pickler.dump(recipe)
    return Sent(file.getvalue(), pickler.beside, pickler.generators)


def try_part(recipe: Recipe, part: Any, left_out: Sequence[int]) -> None:
    """Raises the same for what is a part of the recipe. Objects with the ids `left_out` count as pickled."""
    _PartPickler(_Nowhere(), recipe, left_out).dump(part)


def generators_of(recipe: Recipe) -> list[Any]:
    """Those that its pickle has, as far as it can be pickled."""
    pickler = _Pickler(_Nowhere(), recipe)
    with contextlib.suppress(Exception):
        pickler.dump(recipe)
    return pickler.generators


class _Nowhere:
    def write(self, data: Any) -> int:
        """As if it were written."""
        return len(data)


def load(data: Any, beside: list[Any]) -> Arrived:
    """In a worker. `beside` are writable buffers, which belong to what is made."""
    generators.arrived()
    recipe, of_main = by_value.load_whole(data, beside)
    return Arrived(recipe, generators.arrived(), of_main)


class _Pickler(by_value.ByValue):
    def __init__(self, file: Any, recipe: Recipe) -> None:
        super().__init__(file, protocol=5, buffer_callback=self._is_small)
        self.beside: list[pickle.PickleBuffer] = []
        self.generators: list[Any] = []
        self._recipe = recipe
        self._tensors = _Tensors(recipe)
        self._files: dict[int, files.FileMemory | None] = {}

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is numpy.ndarray or kind is numpy.memmap:
            found = files.reduced(value, self._files)
            if found is not NotImplemented:
                return found
        if value is sys.stdout or value is sys.stderr:
            return getattr, (sys, "stdout" if value is sys.stdout else "stderr")
        self._refuse(kind, value)
        found = self._tensors.reduced(value)
        if found is NotImplemented:
            found = generators.reduced(value, self.generators)
        return super().reducer_override(value) if found is NotImplemented else found

    def _refuse(self, kind: type, value: Any) -> None:
        if isinstance(value, BaseProxy):
            raise Refused(
                f"a multiprocessing.Manager's {kind.__name__} is for processes that the program starts itself: give "
                "the dataset what is in it, or run without --cpus"
            )
        if isinstance(value, io.TextIOWrapper):
            raise TypeError("cannot pickle an open file")
        if not self._recipe.iterable and hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools"):
            raise Refused(
                f"each data worker would go through a {kind.__name__} by itself: take samples by their index, or use "
                "an IterableDataset"
            )

    def _is_small(self, buffer: pickle.PickleBuffer) -> bool:
        is_small = buffer.raw().nbytes <= _BESIDE_BYTES
        if not is_small:
            self.beside.append(buffer)
        return is_small


class _Tensors(Tensors):
    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self._recipe = recipe

    def meet(self, storage: torch.UntypedStorage) -> None:
        if storage.device.type != "cpu":
            raise Refused(f"a tensor on {storage.device} stays in its process: give the dataset tensor.cpu()")
        if self._recipe.persistent and storage.is_shared():
            raise Refused(
                "memory that processes share (share_memory_()) tells persistent workers nothing, since it is sent "
                "once: persistent_workers=False, or clone() it"
            )


class _PartPickler(_Pickler):
    def __init__(self, file: Any, recipe: Recipe, left_out: Sequence[int]) -> None:
        super().__init__(file, recipe)
        self._left_out = left_out

    def persistent_id(self, value: Any) -> Any:
        """pickle asks for it before anything else."""
        return 0 if id(value) in self._left_out else None
