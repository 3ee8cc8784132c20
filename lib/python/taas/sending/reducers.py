"""Objects that other picklers refuse, or send without what is in them.

Cached functions and properties, functools.singledispatch, locks that nobody holds, and wrappers that hand on what they
have not themselves.
"""

from __future__ import annotations

import copyreg
import dataclasses
import functools
import operator
import sys
import threading
import weakref
from typing import Any, Callable

_LOCK = type(threading.Lock())
_RLOCK = type(threading.RLock())
_OF_PICKLE = ("__setstate__", "__getnewargs__", "__getnewargs_ex__")
_CACHED_FUNCTION = type(functools.lru_cache(lambda: None))


def reduced(value: Any) -> Any:
    """For reducer_override: how another process makes `value`; NotImplemented for what has no way of its own here."""
    kind = type(value)
    reduce = _REDUCERS.get(kind)
    if reduce:
        return reduce(value)
    hands_on = hasattr(kind, "__getattr__") and not isinstance(value, type)
    return _hands_on(value) if hands_on and _leaves_it_to_object(kind) else NotImplemented


def _leaves_it_to_object(kind: Any) -> bool:
    """Whether the class has no way of its own to be pickled."""
    own_state = getattr(object, "__getstate__", None)  # from Python 3.11 on
    return (
        kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and hasattr(kind, "__dict__")
        and getattr(kind, "__getstate__", own_state) is own_state
        and not any(hasattr(kind, name) for name in _OF_PICKLE)
    )


def _hands_on(value: Any) -> Any:
    """pickle asks what it has just made for __setstate__.

    A wrapper whose __getattr__ asks an attribute of its own has no attributes yet then.
    """
    names = getattr(copyreg, "_slotnames")(type(value))  # as pickle counts them; it is not in the stubs
    slots = {name: getattr(value, name) for name in names if hasattr(value, name)}
    items = iter(value) if isinstance(value, list) else None
    pairs = iter(value.items()) if isinstance(value, dict) else None
    return getattr(copyreg, "__newobj__"), (type(value),), {**slots, **vars(value)}, items, pairs, set_attributes


def set_attributes(made: Any, state: dict[str, Any]) -> None:
    """In the other process, of what _hands_on() has sent."""
    for name, part in state.items():
        object.__setattr__(made, name, part)


def _lock(lock: Any) -> Any:
    if lock.locked():
        raise TypeError("cannot pickle a lock that is held")
    return threading.Lock, ()


def _reentrant_lock(lock: Any) -> Any:
    if lock._is_owned() or not lock.acquire(blocking=False):
        raise TypeError("cannot pickle a lock that is held")
    lock.release()
    return threading.RLock, ()


def _cached_function(function: Any) -> Any:
    """By name where the other process can import it, and otherwise with an empty cache."""
    found = None if function.__module__ == "__main__" else found_by_name(function)
    if found is function:
        return function.__reduce__()
    if getattr(found, "__func__", None) is function:  # it is behind a class method, as typing.Generic's
        return operator.attrgetter("__func__"), (found,)
    return cached_function, (function.__wrapped__, function.cache_parameters())


def _cached_property(value: functools.cached_property[Any]) -> Any:
    """In two steps: the class that it belongs to may come back to it while its function is pickled."""
    return functools.cached_property.__new__, (functools.cached_property,), vars(value)


def _by_first_argument(method: functools.singledispatchmethod[Any]) -> Any:
    """What Python 3.13 keeps of each object that it was called of is made again."""
    state = {key: type(part)() if key == "_method_cache" and part else part for key, part in vars(method).items()}
    return functools.singledispatchmethod.__new__, (functools.singledispatchmethod,), state


def _by_class(found: weakref.WeakKeyDictionary[Any, Any]) -> Any:
    """singledispatch's cache has classes for keys. What else is in such a dictionary may live by what is not sent."""
    items = dict(found)
    if not all(isinstance(key, type) for key in items):
        raise TypeError("cannot pickle weak references")
    return weakref.WeakKeyDictionary, (items,)


def cached_function(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """In the other process: the function behind a cache of its own."""
    return functools.lru_cache(**parameters)(function)


def found_by_name(what: Any) -> Any:
    """What is there under the name of a function or class."""
    found: Any = sys.modules.get(getattr(what, "__module__", ""))
    for part in getattr(what, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found


_REDUCERS: dict[type, Callable[[Any], Any]] = {
    _LOCK: _lock,
    _RLOCK: _reentrant_lock,
    _CACHED_FUNCTION: _cached_function,
    type(dataclasses.MISSING): lambda _: "MISSING",  # by its name in its module: there is one
    functools.cached_property: _cached_property,
    functools.singledispatchmethod: _by_first_argument,
    weakref.WeakKeyDictionary: _by_class,
}
