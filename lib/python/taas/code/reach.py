"""What objects hold, and what their code can reach.

Closures, defaults, the globals that it names of the program's own modules.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import types
from typing import Any, Iterator

from .program_globals import is_own, looked_up
from .sendable import slots_of

_ITEMS = 64


def reached_from(value: Any) -> Iterator[Any]:
    """One step further. In the same order in every process."""
    if isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, types.BuiltinFunctionType):  # random.Random().random, file.read
        yield value.__self__
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, type):
        yield from _of_class(value) if is_own(value.__module__) else ()
    elif isinstance(value, (dict, types.MappingProxyType)):
        yield from itertools.islice(value.values(), _ITEMS)
    elif isinstance(value, (list, tuple, collections.deque)):
        yield from itertools.islice(value, _ITEMS)
    elif not isinstance(value, types.ModuleType):
        with contextlib.suppress(Exception):  # objects that stand for others may do anything
            yield from itertools.islice(getattr(value, "__dict__", {}).values(), _ITEMS)
            yield from (getattr(value, name) for name in slots_of(type(value)) if hasattr(value, name))
        yield from type(value).__mro__


def closed_over(function: types.FunctionType) -> list[Any]:
    """What its closure has, as far as it has been set."""
    return [cell.cell_contents for cell in function.__closure__ or () if not _is_empty(cell)]


def _of_function(function: types.FunctionType) -> Iterator[Any]:
    yield from closed_over(function)
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    if is_own(function.__module__):
        yield from (value for _, _, value in sorted(looked_up(function), key=lambda found: found[:2]))


def _of_class(cls: type) -> Iterator[Any]:
    """Its functions and its values, but not what Python and its libraries keep in a class."""
    for name, member in vars(cls).items():
        function = _function_of(member)
        if function is not member or isinstance(function, (types.FunctionType, functools.partial)):
            yield function
        elif not (name.startswith("__") or name == "_abc_impl" or hasattr(type(member), "__get__")):
            yield member


def _function_of(member: Any) -> Any:
    if isinstance(member, property):
        return member.fget
    if isinstance(member, functools.cached_property):
        return member.func
    if isinstance(member, functools.partialmethod):
        return functools.partial(member.func, *member.args, **member.keywords)
    return getattr(
        member, "__wrapped__", member
    )  # staticmethod, classmethod, functools.lru_cache, and other decorators


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return True
    return False
