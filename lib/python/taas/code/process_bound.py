"""What a loader's code can reach that belongs to one process: open files, connections, generators under way."""

from __future__ import annotations

import collections
import copyreg
import functools
import gc
import io
import logging
import mmap
import sys
import threading
import types
import weakref
from typing import Any, Callable, Iterator

import numpy
import torch

from .frozen import FROZEN
from .reach import reached_from
from .sendable import slots_of

_MOST_LOOKED_AT = 2000
_MOST_ITEMS = 64
_FREE = (
    types.ModuleType,
    torch.Tensor,
    torch.Generator,
    numpy.ndarray,
    logging.Logger,
    logging.Handler,
    io.BytesIO,
    io.StringIO,
    mmap.mmap,
    memoryview,
    weakref.ref,
    threading.local,
    type(threading.Lock()),
    type(threading.RLock()),
)
_CACHED = type(functools.lru_cache(len))
_CODE = (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)


def found_in(part: Any, but: Any = None) -> str:
    """The type of the first such thing that a dataset or a collate_fn can reach, or nothing; not looking into `but`.

    Forks share the place in an open file, and each goes on by itself with a generator: batches are right only as long
    as one process makes them all.
    """
    return next((type(value).__name__ for value, parts in _reached(part, _parts, but) if parts is None), "")


def iterator_in(dataset: Any) -> str:
    """The type of the first iterator of Python's own that it holds, or nothing: what it gives next is in no state."""
    return next(
        (
            type(value).__name__
            for value, _ in _reached(dataset, _held)
            if hasattr(value, "__next__") and type(value).__module__ in ("builtins", "itertools")
        ),
        "",
    )


def _reached(
    part: Any, parts_of: Callable[[Any], list[Any] | None], but: Any = None
) -> Iterator[tuple[Any, list[Any] | None]]:
    """Each value with its parts; these are None for what is bound to its process."""
    waiting, seen = [part], {id(part), id(but)}
    while waiting and len(seen) < _MOST_LOOKED_AT:
        value = waiting.pop()
        parts = parts_of(value)
        yield value, parts
        new = [each for each in parts or () if type(each) not in FROZEN and id(each) not in seen]
        seen.update(map(id, new))
        waiting += new


def _held(value: Any) -> list[Any] | None:
    """Its parts, but nothing that only its code can reach."""
    return [] if isinstance(value, _CODE) else _parts(value)


def _parts(value: Any) -> list[Any] | None:
    """What `value` reaches; None when it is bound to its process.

    It is so when it has a place that moves, or says it cannot be pickled.
    """
    if (
        isinstance(value, _FREE)
        or value is sys.stdout
        or value is sys.stderr
        or (isinstance(value, io.IOBase) and value.closed)
    ):
        return []
    if isinstance(value, _CODE):
        return list(reached_from(value))
    if isinstance(value, _CACHED):
        return _cached_by(value)
    if hasattr(value, "__next__") or (isinstance(value, threading.Thread) and value.is_alive()):
        return None
    own = [
        *getattr(value, "__dict__", {}).values(),
        *(getattr(value, name, None) for name in slots_of(type(value))),
        *type(value).__mro__,
    ]
    if isinstance(value, (dict, types.MappingProxyType)):
        return list(value.values())[:_MOST_ITEMS] + own
    if isinstance(value, (list, tuple, set, collections.deque)):
        return list(value)[:_MOST_ITEMS] + own
    return own if _can_be_reduced(value) else None


def _cached_by(function: Any) -> list[Any]:
    """What functools.lru_cache keeps for `function`, and the function."""
    held = gc.get_referents(function)
    values = [value for part in held if type(part) is dict for value in list(part.values())[:_MOST_ITEMS]]
    return [part for part in (*held, *values) if type(part) is not dict and type(part).__name__ != "_lru_list_elem"]


def _can_be_reduced(value: Any) -> bool:
    try:
        if type(value) not in copyreg.dispatch_table:
            value.__reduce_ex__(5)
    except Exception:
        return False
    return True
