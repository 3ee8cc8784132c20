"""Iterators that a dataset holds: what they give next is in no state."""

from __future__ import annotations

import collections
import types
from typing import Any

from .frozen import FROZEN
from .sendable import slots_of

_MOST_LOOKED_AT = 2000
_MOST_ITEMS = 64
_CODE = (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType)


def iterator_in(dataset: Any) -> str:
    """The type of the first iterator of Python's own that it holds, or nothing."""
    waiting, seen = [dataset], {id(dataset)}
    while waiting and len(seen) < _MOST_LOOKED_AT:
        value = waiting.pop()
        if hasattr(value, "__next__") and type(value).__module__ in ("builtins", "itertools"):
            return type(value).__name__
        new = [each for each in _parts(value) if type(each) not in FROZEN and id(each) not in seen]
        seen.update(map(id, new))
        waiting += new
    return ""


def _parts(value: Any) -> list[Any]:
    if isinstance(value, _CODE):
        return []
    own = [
        *getattr(value, "__dict__", {}).values(),
        *(getattr(value, name, None) for name in slots_of(type(value))),
    ]
    if isinstance(value, dict):
        return list(value.values())[:_MOST_ITEMS] + own
    if isinstance(value, (list, tuple, set, collections.deque)):
        return list(value)[:_MOST_ITEMS] + own
    return own
