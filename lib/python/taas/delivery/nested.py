"""Batches of any nesting: what is done to all that is in them."""

from __future__ import annotations

import collections.abc
import copy
import dataclasses
from typing import Any, Callable, Iterator


def has_to(value: Any) -> bool:
    """True for tensors, and for objects that know how to move to a device."""
    return callable(getattr(value, "to", None)) and not isinstance(value, type)


def leaves_of(value: Any) -> Iterator[Any]:
    """What mapped() would change, but for what is in containers that cannot be looked through. Makes nothing."""
    if isinstance(value, (str, bytes)) or has_to(value):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves_of(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves_of(getattr(value, field.name, None))
    else:
        yield value


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with `change` done to all that is no list, tuple, dictionary or dataclass in it.

    Containers are new ones.
    """
    if isinstance(value, (str, bytes)) or has_to(value):
        return change(value)
    if isinstance(value, collections.abc.Mapping):
        return _mapped_mapping(value, change)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        new: Any = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(new, field.name, mapped(getattr(value, field.name), change))
        return new
    if isinstance(value, tuple):
        items = [mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, list):
        new = copy.copy(value)
        new[:] = [mapped(item, change) for item in value]
        return new
    return change(value)


def _mapped_mapping(value: Any, change: Callable[[Any], Any]) -> Any:
    items = {key: mapped(item, change) for key, item in value.items()}
    if type(value) is dict:
        return items
    try:
        new = copy.copy(value)  # it may have more than its items
        new.update(items)
        return new
    except (AttributeError, TypeError):
        return type(value)(items)
