"""Objects as bytes: by reference where the other process can import them, by value (cloudpickle) where it cannot."""

from __future__ import annotations

import importlib
import io
import pickle
import sys
import types
from typing import Any, Callable, NamedTuple

try:
    import cloudpickle
except ImportError:  # pragma: no cover
    cloudpickle = None

from . import reducers


class Unpicklable(Exception):
    """Says why an object cannot be pickled."""


class ByValue(cloudpickle.Pickler if cloudpickle else pickle.Pickler):  # type: ignore[misc]
    """cloudpickle, with what it refuses or would lose."""

    def reducer_override(self, value: Any) -> Any:
        found = reducers.reduced(value)
        above = getattr(super(), "reducer_override", None)
        if found is not NotImplemented or above is None:
            return found
        found = above(value)
        if type(found) is not tuple:
            return found
        return _function(value, *found) if isinstance(value, types.FunctionType) else _class(value, *found)


class ByName(ByValue):
    """What the other process has under its name is what it has; the rest goes along."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, types.FunctionType)) and reducers.found_by_name(value) is value:
            return NotImplemented
        return super().reducer_override(value)


def _class(cls: Any, make: Callable[..., Any], arguments: tuple[Any, ...], *rest: Any) -> tuple[Any, ...]:
    """cloudpickle loses a class's qualified name, and its __slots__: these mean nothing where they are set afterwards.

    Slots of tuples are empty, and named ones have theirs from typing.
    """
    if make is not getattr(cloudpickle.cloudpickle, "_make_skeleton_class", None):
        return make, arguments, *rest
    kind, name, bases, namespace, *others = arguments
    if kind.__module__ == "msgspec._core":
        raise TypeError(
            f"cannot pickle {cls.__qualname__}, a class of msgspec that the script has: move it to a module"
        )
    (own, of_object), *setting = rest
    own = {"__qualname__": cls.__qualname__, **own}
    if "__slots__" in own and not issubclass(cls, tuple):
        own = {key: part for key, part in own.items() if not isinstance(part, types.MemberDescriptorType)}
        namespace = {**namespace, "__slots__": own.pop("__slots__")}
    return make, (kind, name, bases, namespace, *others), (own, of_object), *setting


def _function(
    function: types.FunctionType, make: Callable[..., Any], arguments: tuple[Any, ...], state: Any, *rest: Any
) -> tuple[Any, ...]:
    """What an importable module makes (a lambda, a local function) has the globals that the module has there.

    So do functions that come by reference.
    """
    code, _, *others = arguments
    own, slots = state
    if not _is_importable(function):
        return _made, (make, *arguments), state, *rest
    module = function.__globals__["__name__"]
    return _made, (_made_in, module, make, code, *others), (own, {**slots, "__globals__": {}}), *rest


def _is_importable(function: types.FunctionType) -> bool:
    """Not by what it says of itself, which may be that of a function that it wraps."""
    name = function.__globals__.get("__name__", "__main__")
    module = sys.modules.get(name)
    return (
        module is not None
        and name != "__main__"
        and function.__globals__ is vars(module)
        and module.__spec__ is not None
        and name not in cloudpickle.list_registry_pickle_by_value()
    )


_arriving: list[types.FunctionType] | None = None
"""Functions that came by value, while load_whole() asks for them."""


def _made(make: Callable[..., Any], *arguments: Any) -> Any:
    made = make(*arguments)
    if _arriving is not None:
        _arriving.append(made)
    return made


def _made_in(module: str, make: Callable[..., Any], code: types.CodeType, *rest: Any) -> Any:
    return make(code, vars(importlib.import_module(module)), *rest)


class OfMain(NamedTuple):
    """The functions and classes of the program's main module that came with an object, by their qualified names."""

    found: dict[str, Any]

    def enter(self) -> None:
        """What is pickled from now on is found in the main module by its name."""
        for name, found in self.found.items():
            *way, last = name.split(".")
            owner: Any = sys.modules["__main__"]
            for part in way:
                if not hasattr(owner, part):
                    setattr(owner, part, types.SimpleNamespace())
                owner = getattr(owner, part)
            if getattr(owner, last, None) is not found:
                setattr(owner, last, found)


def load_whole(data: Any, buffers: list[Any]) -> tuple[Any, OfMain]:
    """The object. Classes that come by value are new ones, also where the same have come before."""
    classes = getattr(getattr(cloudpickle, "cloudpickle", None), "_DYNAMIC_CLASS_TRACKER_BY_ID", {})
    classes.clear()
    global _arriving
    functions: list[types.FunctionType] = []
    _arriving = functions
    try:
        what = pickle.loads(data, buffers=buffers)
    finally:
        _arriving = None
    came: list[Any] = [*classes.values(), *(each for each in functions if "." not in each.__qualname__)]
    names = {each.__qualname__: each for each in came if each.__module__ == "__main__"}
    return what, OfMain({name: names[name] for name in sorted(names) if "<locals>" not in name})


def hint() -> str:
    """What could help."""
    return (
        "" if cloudpickle else "; with `pip install cloudpickle` lambdas and classes of the script itself can be sent"
    )


def dumps(what: Any, kind: type[ByValue] = ByValue) -> bytes:
    """Raises what pickling raises."""
    file = io.BytesIO()
    kind(file, protocol=5).dump(what)
    return file.getvalue()


def first_line(error: BaseException) -> str:
    """What an exception says, or else what it is."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def load(data: Any) -> Any:
    """The object. Only for bytes from a process of the same run."""
    return pickle.load(io.BytesIO(data))
