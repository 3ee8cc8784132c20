"""What the code of a loader sees outside of the loader's own objects.

That is globals of the program's modules, attributes of its classes and functions, variables of contexts and threads.
Data workers are to see of it what the rank has.
"""

from __future__ import annotations

import ast
import base64
import collections
import contextlib
import contextvars
import enum
import functools
import os
import sys
import threading
import types
from typing import Any, Iterator, NamedTuple

import numpy
import torch

from ..code import pickling
from ..code.plain import is_plain
from ..code.program_globals import is_own, looked_up
from ..code.reach import closed_over, reached_from
from ..code.recipe import Recipe
from .snapshot import Snapshot, TooMuch

_MOST = 400
_MOST_REACHED = 4000
_LONGEST = 2000
_MOST_OBJECTS = 2000
_MOST_BYTES = 64 << 10
_MOST_SENT_BYTES = 16 << 10
_CODE = (types.ModuleType, types.BuiltinFunctionType, types.FunctionType, type)


class Seen(NamedTuple):
    """The texts of plain values, and other objects, by place.

    A place is "module:name" or "module:Class.name"; with "()" behind it that of a context variable.
    """

    texts: dict[str, str]
    objects: dict[str, Any]

    def sendable(self) -> dict[str, str]:
        """The texts for other processes: of modules that they import, but paths, which are a machine's own."""
        return {place: text for place, text in self.texts.items() if _is_imported(place) and text[1:2] != os.sep}


class Followed:
    """What one loader's code sees, from loop to loop."""

    def __init__(self) -> None:
        self._looks: dict[str, Any] = {}
        self._made_here: set[str] | None = None
        self.pickles: dict[str, str] = {}
        """Of those objects that can be sent, and are small: what a program configures itself with, say."""

    def look(self, recipe: Recipe) -> tuple[Seen, list[str]]:
        """What is seen now, and the places of objects that are not what they were at the look before."""
        seen, before = seen_by(recipe), self._looks
        self._looks = {place: _look(value, before.get(place)) for place, value in seen.objects.items()}
        changed = [place for place, look in self._looks.items() if before and not _is_as(look, before.get(place))]
        made_here = {place for place in seen.texts if not _can_be_imported(place)}
        changed += sorted(made_here - self._made_here) if self._made_here is not None else []
        self._made_here = made_here
        if not before or changed or before.keys() != self._looks.keys():
            self.pickles = dict(self._pickled(seen.objects))
        return seen, changed

    def _pickled(self, objects: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """As long as they are few bytes: they travel with every task."""
        left = _MOST_SENT_BYTES
        for place, value in objects.items():
            if _is_imported(place) and isinstance(self._looks[place], Snapshot):
                with contextlib.suppress(pickling.Unpicklable):
                    data = pickling.by_value(value)
                    left -= len(data)
                    if left >= 0:
                        yield place, base64.b64encode(data).decode()


@functools.lru_cache(maxsize=1024)
def _unpickled(data: str) -> Any:
    return pickling.load(base64.b64decode(data))


def objects_of(pickles: dict[str, str]) -> dict[str, Any]:
    """In a data worker: those that it can make."""
    made = {}
    for place, data in pickles.items():
        with contextlib.suppress(Exception):
            made[place] = _unpickled(data)
    return made


def _look(value: Any, before: Any) -> Any:
    """What tells it from its next state."""
    try:
        return Snapshot(
            [value], _MOST_BYTES, before if isinstance(before, Snapshot) else None, most_objects=_MOST_OBJECTS
        )
    except TooMuch:
        if isinstance(value, torch.Tensor):
            return id(value), value._version
        return id(value), len(value) if isinstance(value, (list, tuple, dict, set)) else 0


def _is_as(look: Any, before: Any) -> bool:
    return before is None or (type(look) is type(before) and look == before)


def seen_by(recipe: Recipe) -> Seen:
    """As far as some thousand objects tell."""
    seen = Seen({}, {})
    for place, value in _looked_at(recipe):
        if is_plain(value) and len(text := repr(value)) <= _LONGEST and "nan" not in text and "inf" not in text:
            seen.texts[place] = text
        else:
            seen.objects[place] = value
        if len(seen.texts) + len(seen.objects) >= _MOST:
            break
    return seen


_ABSENT = object()
_before: dict[str, Any] = {}  # by place: what there was before a rank's value was put there
_wanted: dict[str, Any] = {}  # by place: the rank's value that was put there last; code here may have set another since


def take(texts: dict[str, str], objects: dict[str, Any]) -> None:
    """In a data worker: modules that are there have the rank's values.

    Where other ranks, or loaders, had one, there is what there was at first.
    """
    wanted = {**texts, **objects}
    for place in _before.keys() - wanted.keys():
        _wanted.pop(place, None)
        if (value := _before.pop(place)) is not _ABSENT or not place.endswith(
            "()"
        ):  # variables of contexts cannot be unset
            _put(place, value)
    for place, value in wanted.items():
        last = _wanted.get(place)
        if (
            _owner_of(place)[0] is None or last is value or (place in texts and last == value)
        ):  # not in use yet, or there
            continue
        _wanted[place] = value
        present = _present(place)
        if place in texts:
            if is_plain(present) and repr(present) == value:
                continue
            value = ast.literal_eval(value)
        if present is not value:
            _before.setdefault(place, present)
            _put(place, value)


def _present(place: str) -> Any:
    owner, name = _owner_of(place)
    found = getattr(owner, name, _ABSENT)
    return found.get(_ABSENT) if isinstance(found, contextvars.ContextVar) and place.endswith("()") else found


def _put(place: str, value: Any) -> None:
    owner, name = _owner_of(place)
    if place.endswith("()"):
        found = getattr(owner, name, None)
        if isinstance(found, contextvars.ContextVar):
            found.set(value)
    elif owner is not None:
        with contextlib.suppress(AttributeError, TypeError):  # its class does not let it be changed
            delattr(owner, name) if value is _ABSENT else setattr(owner, name, value)


def _owner_of(place: str) -> tuple[Any, str]:
    """The module, class or function that has the name; None where there is none."""
    module, _, path = place.removesuffix("()").partition(":")
    owner: Any = sys.modules.get(module)
    *way, name = path.split(".")
    for part in way:
        owner = getattr(owner, part, None)
    return owner, name


def _is_imported(place: str) -> bool:
    return not place.startswith(("__main__:", ":"))


def _can_be_imported(place: str) -> bool:
    """False for what is in a module that the program has made itself."""
    module = place.partition(":")[0]
    return not module or module == "__main__" or getattr(sys.modules.get(module), "__spec__", None) is not None


def functions_of(module: str, recipe: Recipe) -> list[types.FunctionType]:
    """Those of a module that its code can reach."""
    return [value for value in _reached(recipe) if isinstance(value, types.FunctionType) and value.__module__ == module]


def _looked_at(recipe: Recipe) -> Iterator[tuple[str, Any]]:
    """Place and value, of what all code that the recipe can reach looks up."""
    for value in _reached(recipe):
        for place, found in _outside_of(value):
            yield from _as_values(place, found)


def _reached(recipe: Recipe) -> Iterator[Any]:
    """What its code can reach, and it itself: as far as some thousand objects tell."""
    waiting = collections.deque([recipe.collate_fn, recipe.worker_init_fn, recipe.dataset])
    reached: dict[int, Any] = {}
    while waiting and len(reached) < _MOST_REACHED:
        value = waiting.popleft()
        if id(value) not in reached:
            reached[id(value)] = value
            yield value
            waiting.extend(found for _, found in _outside_of(value))
            waiting.extend(each for each in reached_from(value) if not _is_leaf(each))


def _is_leaf(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.Tensor, numpy.ndarray))


def _outside_of(value: Any) -> Iterator[tuple[str, Any]]:
    """What code has, or looks up, by a name that others could change."""
    if isinstance(value, types.FunctionType) and is_own(value.__module__):
        for module, name, found in looked_up(value):
            yield f"{module}:{name}", found
        for number, found in enumerate((closed_over(value), value.__defaults__, value.__kwdefaults__)):
            if found:
                yield (
                    f":{value.__module__}.{value.__qualname__}, {('closure', 'defaults', 'keyword defaults')[number]}",
                    found,
                )
        for name, found in vars(value).items():
            if name != "__wrapped__":
                yield f"{value.__module__}:{value.__qualname__}.{name}", found
    elif isinstance(value, type) and is_own(value.__module__) and not issubclass(value, enum.Enum):
        for name, found in list(vars(value).items()):
            if not (name.startswith("__") or name == "_abc_impl" or hasattr(type(found), "__get__")):
                yield f"{value.__module__}:{value.__qualname__}.{name}", found
    elif isinstance(value, contextvars.ContextVar):
        yield f":the context variable {value.name}()", value
    elif isinstance(value, threading.local):
        yield f":a variable of the thread {id(value)}", value


def _as_values(place: str, found: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(found, contextvars.ContextVar):
        if found in contextvars.copy_context():
            yield f"{place.removesuffix('()')}()", found.get()
    elif isinstance(found, threading.local):
        yield from ((f"{place}.{name}", value) for name, value in vars(found).items())
    elif not isinstance(found, _CODE):
        yield place, found
