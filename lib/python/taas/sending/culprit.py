"""Which part of a loader it is that cannot be pickled, as its program would write it."""

from __future__ import annotations

import contextlib
import functools
import types
from typing import Any, Callable, Iterator

from .modules import with_inner

_DEEPEST = 12


def culprit(
    what: Any, name: str, error: Exception, dump: Callable[[Any, tuple[int, ...]], object], above: tuple[int, ...] = ()
) -> tuple[str, Exception]:
    """Its name ("dataset.files[0]", "collate_fn's global log") with its type, and what `dump` raises for it.

    `dump` takes an object, and the ids of those that it leaves out: parts may lead back to the whole. `error` is what
    it raised for `what`.
    """
    above += (id(what),)
    for inner, part in _parts_of(what, name) if len(above) < _DEEPEST else ():
        try:
            dump(part, above)
        except Exception as of_part:
            return culprit(part, inner, of_part, dump, above)
    return f"{name} ({type(what).__module__}.{type(what).__qualname__})", error


def _parts_of(what: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(what, types.FunctionType):
        yield from _of_function(what, name)
    elif isinstance(what, (types.MethodType, types.BuiltinFunctionType)):
        yield f"{name}.__self__", what.__self__
    elif isinstance(what, functools.partial):
        yield from ((f"{name}.{part}", getattr(what, part)) for part in ("func", "args", "keywords"))
    elif isinstance(what, (list, tuple)):
        yield from ((f"{name}[{place}]", part) for place, part in enumerate(what))
    elif isinstance(what, dict):
        yield from ((f"{name}[{key!r}]", part) for key, part in what.items())
    if isinstance(what, type):
        members = vars(what).items()
        own = (each for each in members if isinstance(each[1], types.FunctionType) or not each[0].startswith("__"))
        yield from ((f"{name}.{key}", part) for key, part in own)
    elif not isinstance(what, types.FunctionType):
        yield from ((f"{name}.{key}", part) for key, part in _state_of(what).items())
        yield type(what).__qualname__, type(what)


def _state_of(what: Any) -> dict[str, Any]:
    """What pickle takes of its attributes. None where it has nothing to do with attributes, or raises."""
    try:
        made = what.__reduce_ex__(5)
    except Exception:
        return {}
    state = made[2] if type(made) is tuple and len(made) > 2 else None
    parts = state if type(state) is tuple else (state,)
    return {str(key): value for part in parts if isinstance(part, dict) for key, value in part.items()}


def _of_function(function: types.FunctionType, name: str) -> Iterator[tuple[str, Any]]:
    """What goes along with it where it goes by value: the others can be pickled."""
    for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # it has not been set
            yield f"{name}'s variable {variable}", cell.cell_contents
    yield from ((f"{name}'s default", part) for part in function.__defaults__ or ())
    yield from ((f"{name}'s default {key}", part) for key, part in (function.__kwdefaults__ or {}).items())
    for code in with_inner(function.__code__):
        for key in code.co_names:
            if key in function.__globals__:
                yield f"{name}'s global {key}", function.__globals__[key]
