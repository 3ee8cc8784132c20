"""What other picklers refuse, and data workers have all the same.

Cached functions and properties, functools.singledispatch, locks that nobody holds, and wrappers that hand on what they
have not themselves.
"""

from __future__ import annotations

import copyreg
import functools
import operator
import struct
import sys
import threading
import weakref
from typing import Any, Callable

_IS_HEAP_TYPE = 1 << 9
_POINTER = struct.calcsize("P")
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
    return (
        kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and hasattr(kind, "__dict__")
        and not has_getstate(kind)
        and not any(hasattr(kind, name) for name in _OF_PICKLE)
    )


def has_getstate(kind: Any) -> bool:
    """Whether the class says what of an object is pickled."""
    own = getattr(object, "__getstate__", None)
    return getattr(kind, "__getstate__", own) is not own


def _hands_on(value: Any) -> Any:
    """pickle asks what it has just made for __setstate__.

    A wrapper whose __getattr__ asks an attribute of its own has no attributes yet then.
    """
    slots = {name: getattr(value, name) for name in slots_of(type(value)) if hasattr(value, name)}
    return getattr(copyreg, "__newobj__"), (type(value),), {**slots, **vars(value)}, None, None, set_attributes


@functools.lru_cache(maxsize=4096)
def has_only_attributes(kind: Any) -> bool:
    """Whether objects of this class are made of attributes and slots alone.

    Nor do they say anything else of themselves but in __getstate__: the class and its bases are Python's, not an
    extension's.
    """
    if kind.__reduce_ex__ is not object.__reduce_ex__ or kind.__reduce__ is not object.__reduce__:
        return False
    more = sum(bool(getattr(kind, place)) for place in ("__dictoffset__", "__weakrefoffset__"))
    bytes_of_slots = _POINTER * len(slots_of(kind))
    is_derived = (
        kind is not object and next(base for base in kind.__mro__ if not base.__flags__ & _IS_HEAP_TYPE) is object
    )
    return is_derived and kind.__basicsize__ <= object.__basicsize__ + bytes_of_slots + more * _POINTER


def slots_of(kind: type) -> list[str]:
    """As pickle counts them: the function has no place in the stubs."""
    return getattr(copyreg, "_slotnames")(kind)


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
    found = _importable(function)
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


def _importable(function: Any) -> Any:
    """What another process finds under its name."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    found: Any = None if module == "__main__" else sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


_REDUCERS: dict[type, Callable[[Any], Any]] = {
    _LOCK: _lock,
    _RLOCK: _reentrant_lock,
    _CACHED_FUNCTION: _cached_function,
    functools.cached_property: _cached_property,
    functools.singledispatchmethod: _by_first_argument,
    weakref.WeakKeyDictionary: _by_class,
}
