"""Objects as bytes: by reference where the other process can import them, by value (cloudpickle) where it cannot."""

from __future__ import annotations

import importlib
import inspect
import io
import pickle
import sys
import types
from typing import Any, Callable, Iterator

try:
    import cloudpickle
except ImportError:  # pragma: no cover
    cloudpickle = None

from .program_globals import is_own
from .sendable import reduced

CAN_SEND_BY_VALUE = cloudpickle is not None


class Unpicklable(Exception):
    """Says which part of an object cannot be pickled."""


class ByValue(cloudpickle.Pickler if cloudpickle else pickle.Pickler):  # type: ignore[misc]
    """cloudpickle, with what it refuses or would lose."""

    def reducer_override(self, value: Any) -> Any:
        found = reduced(value)
        above = getattr(super(), "reducer_override", None)
        if found is not NotImplemented or above is None:
            return found
        found = above(value)
        if type(found) is tuple and (type(value).__module__, type(value).__name__) == ("msgspec._core", "StructMeta"):
            return _struct_class(value)
        if isinstance(value, type) and type(found) is tuple and "__slots__" in vars(value):
            return _with_slots(value, *found)
        if isinstance(value, types.FunctionType) and type(found) is tuple and _is_of_an_own_module(value):
            return (_function_of, (value.__module__, found[0], *found[1]), *found[2:])
        return found


def _with_slots(
    cls: type, make: Callable[..., Any], arguments: tuple[Any, ...], state: Any = None, *rest: Any
) -> tuple[Any, ...]:
    """cloudpickle makes a class without its __slots__, and sets them afterwards, when they mean nothing any more.

    Those of tuples are empty, and named ones have theirs from typing.
    """
    if issubclass(cls, tuple) or make is not getattr(cloudpickle.cloudpickle, "_make_skeleton_class", None):
        return make, arguments, state, *rest
    kind, name, bases, namespace, *others = arguments
    own, of_object = state
    own = {key: part for key, part in own.items() if not isinstance(part, types.MemberDescriptorType)}
    return (
        make,
        (kind, name, bases, {**namespace, "__slots__": vars(cls)["__slots__"]}, *others),
        (own, of_object),
        *rest,
    )


_OPTIONS_OF_STRUCTS = (
    "frozen",
    "eq",
    "order",
    "array_like",
    "gc",
    "weakref",
    "dict",
    "cache_hash",
    "omit_defaults",
    "repr_omit_defaults",
    "forbid_unknown_fields",
    "tag",
    "tag_field",
)


def _struct_class(cls: Any) -> tuple[Any, ...]:
    """A class of msgspec's is made by its own function.

    It takes no slots, and as a class without fields none afterwards.
    """
    import msgspec

    own = [field for field in msgspec.structs.fields(cls) if field.name in vars(cls).get("__annotations__", {})]
    fields = [
        (
            field.name,
            field.type,
            {
                name: getattr(field, name)
                for name in ("default", "default_factory")
                if getattr(field, name) is not msgspec.NODEFAULT
            },
        )
        for field in own
    ]
    parameters = inspect.signature(cls).parameters
    options = {name: getattr(cls.__struct_config__, name) for name in _OPTIONS_OF_STRUCTS}
    options["kw_only"] = bool(own) and all(
        parameters[field.name].kind is inspect.Parameter.KEYWORD_ONLY for field in own
    )
    members = {
        name: part
        for name, part in vars(cls).items()
        if not (name.startswith("__") or isinstance(part, types.MemberDescriptorType))
    }
    made = (cls.__name__, fields, cls.__bases__, cls.__module__, cls.__qualname__, options)
    tracker = cloudpickle.cloudpickle._get_or_create_tracker_id(cls)
    return _made_struct, (tracker, *made), members, None, None, _set_members


def _made_struct(
    tracker: str, name: str, fields: Any, bases: Any, module: str, qualname: str, options: dict[str, Any]
) -> Any:
    import msgspec

    made = [(field, kind, msgspec.field(**default)) if default else (field, kind) for field, kind, default in fields]
    cls = msgspec.defstruct(name, made, bases=bases, module=module, namespace={"__qualname__": qualname}, **options)
    return cloudpickle.cloudpickle._lookup_class_or_track(tracker, cls)


def _set_members(cls: Any, members: dict[str, Any]) -> None:
    for name, part in members.items():
        setattr(cls, name, part)


def _is_of_an_own_module(function: types.FunctionType) -> bool:
    """True for a lambda or a local function of a module of the program that others can import."""
    module = sys.modules.get(function.__module__)
    return (
        module is not None
        and function.__module__ != "__main__"
        and function.__globals__ is vars(module)
        and module.__spec__ is not None
        and is_own(function.__module__)
    )


def _function_of(module: str, make: Callable[..., Any], code: types.CodeType, own: dict[str, Any], *rest: Any) -> Any:
    """Its globals are the module's, or its own where there is none.

    Functions that come by reference have the module's as well.
    """
    try:
        return make(code, vars(importlib.import_module(module)), *rest)
    except Exception:
        return make(code, own, *rest)


def by_value(what: Any) -> bytes:
    """For code and datasets: what `__main__` defines, lambdas and local functions go along. Raises Unpicklable."""
    file = io.BytesIO()
    write_by_value(what, file)
    return file.getvalue()


def write_by_value(what: Any, file: Any) -> None:
    """The same bytes, into a file. Raises Unpicklable, also for what the file raises."""
    try:
        ByValue(file, protocol=5).dump(what)
    except Exception as error:
        raise Unpicklable(f"{first_line(error)}{hint()}") from error


def hint() -> str:
    """What could help."""
    return (
        "" if cloudpickle else "; with `pip install cloudpickle` lambdas and classes of the script itself can be sent"
    )


def by_reference(what: Any) -> bytes:
    """For objects inside batches: a class that the training program has itself stays that class. Raises Unpicklable."""
    try:
        return pickle.dumps(what, protocol=5)
    except Exception:
        return by_value(what)


def classes_by_value() -> list[type]:
    """Those that came by value and are still in use, the last ones last: pickles of the same run may name them."""
    known = getattr(cloudpickle, "cloudpickle", None)
    last = getattr(known, "_DYNAMIC_CLASS_TRACKER_BY_ID", {})
    return [*getattr(known, "_DYNAMIC_CLASS_TRACKER_BY_CLASS", ()), *last.values()]


def forget_classes() -> None:
    """Classes that come by value from now on are new ones, also where the same have come before."""
    known = getattr(getattr(cloudpickle, "cloudpickle", None), "_DYNAMIC_CLASS_TRACKER_BY_ID", None)
    if known is not None:
        known.clear()


def culprit(what: Any, name: str, dump: Callable[[Any], bytes] = by_value, depth: int = 8) -> str:
    """Which part of `what` it is that cannot be pickled: "dataset.files[0]"."""
    for path, part in _parts_of(what, name) if depth else ():
        try:
            dump(part)
        except Exception:
            return culprit(part, path, dump, depth - 1)
    return f"{name} ({type(what).__module__}.{type(what).__qualname__})"


def _parts_of(what: Any, name: str) -> Iterator[tuple[str, Any]]:
    """As a program would write them. What says itself how it is pickled has none."""
    if getattr(type(what), "__reduce__") is not getattr(object, "__reduce__"):
        return
    if isinstance(what, (list, tuple)):
        yield from ((f"{name}[{place}]", part) for place, part in enumerate(what))
    elif isinstance(what, dict):
        yield from ((f"{name}[{key!r}]", part) for key, part in what.items())
    if hasattr(what, "__dict__") and not isinstance(what, type):
        yield from ((f"{name}.{key}", part) for key, part in vars(what).items())


def first_line(error: BaseException) -> str:
    """What an exception says, or else what it is."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def load(data: Any) -> Any:
    """The object. Only for bytes from a process of the same run."""
    return pickle.load(io.BytesIO(data))
