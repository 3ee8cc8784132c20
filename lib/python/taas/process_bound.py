"""What a dataset holds that belongs to one process: open files, connections, generators under way."""

from __future__ import annotations

import copyreg
import io
import logging
import mmap
import sys
import threading
import types
import weakref
from typing import Any, Iterator

import numpy
import torch

from .frozen import FROZEN

_MOST_LOOKED_AT = 2000
_MOST_ITEMS = 64
_FREE = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, torch.Tensor, torch.Generator, numpy.ndarray,
         logging.Logger, logging.Handler, io.BytesIO, io.StringIO, mmap.mmap, memoryview, weakref.ref,
         threading.local, type(threading.Lock()), type(threading.RLock()))


def found_in(dataset: Any) -> str:
    """The type of the first such thing, or nothing. Forks share the place in an open file, and each goes on by itself with a
    generator: batches are right only as long as one process makes them all.
    """
    return next((type(value).__name__ for value, parts in _held_by(dataset) if parts is None), "")


def iterator_in(dataset: Any) -> str:
    """The type of the first iterator of Python's own that it holds, or nothing: what it gives next is in no state."""
    return next((type(value).__name__ for value, _ in _held_by(dataset)
                 if hasattr(value, "__next__") and type(value).__module__ in ("builtins", "itertools")), "")


def _held_by(dataset: Any) -> Iterator[tuple[Any, list[Any] | None]]:
    """What can be reached from it, with the parts of each: see _parts()."""
    waiting, seen = [dataset], {id(dataset)}
    while waiting and len(seen) < _MOST_LOOKED_AT:
        value = waiting.pop()
        parts = _parts(value)
        yield value, parts
        new = [part for part in parts or () if type(part) not in FROZEN and id(part) not in seen]
        seen.update(map(id, new))
        waiting += new


def _parts(value: Any) -> list[Any] | None:
    """What `value` holds; None when it is bound to its process: it has a place that moves, or says that it cannot be pickled."""
    if isinstance(value, _FREE) or value is sys.stdout or value is sys.stderr:
        return []
    if hasattr(value, "__next__") or (isinstance(value, threading.Thread) and value.is_alive()):
        return None
    own = [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in copyreg._slotnames(type(value)))]
    if isinstance(value, dict):
        return list(value.values())[:_MOST_ITEMS] + own
    if isinstance(value, (list, tuple, set)):
        return list(value)[:_MOST_ITEMS] + own
    return own if _can_be_reduced(value) else None


def _can_be_reduced(value: Any) -> bool:
    try:
        if type(value) not in copyreg.dispatch_table:
            value.__reduce_ex__(5)
    except Exception:
        return False
    return True
