"""Subclasses of DataLoader that iterate in a way of their own: what remains of it under delivery."""

from __future__ import annotations

import types
from typing import Iterator

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ..code.code_objects import with_inner


def why_refused(loader: DataLoader) -> str | None:
    """One line for loaders whose batches delivery cannot make, and that nobody would expect to be left alone."""
    cls = type(loader)
    if not _iterates_on_its_own(cls):
        return None
    inner = [name for name, value in vars(loader).items() if isinstance(value, DataLoader)]
    if inner and not _asks_torch(cls, "__iter__", "_get_iterator"):
        return (
            f"{cls.__name__} iterates over another loader, its attribute {inner[0]}: "
            f"call taas.register on that one, `taas.register(loader.{inner[0]})`"
        )
    if is_own(cls, "_get_iterator") and not _asks_torch(cls, "_get_iterator"):
        return (
            f"{cls.__name__} has an iterator of its own (_get_iterator), which data workers cannot stand in for: "
            "give a torch.utils.data.DataLoader, or leave this loader unregistered"
        )
    if is_own(cls, "_get_iterator") and loader.persistent_workers:
        return f"{cls.__name__} keeps an iterator of its own from loop to loop: give it persistent_workers=False"
    return None


def why_plain(loader: DataLoader) -> str | None:
    """One line for loaders that go on as they are, because they do not ask torch's DataLoader for batches any more."""
    cls = type(loader)
    if not _iterates_on_its_own(cls):
        return None
    if any(isinstance(value, _BaseDataLoaderIter) for value in vars(loader).values()):
        return (
            f"{cls.__name__} made its iterator before it was registered: its batches come from the plain loader; "
            "give a torch.utils.data.DataLoader for delivery by data workers"
        )
    if not _asks_torch(cls, "__iter__", "_get_iterator"):
        return (
            f"{cls.__name__}.__iter__ does not call super().__iter__(): its batches come from the plain loader; "
            "give a torch.utils.data.DataLoader for delivery by data workers"
        )
    return None


def _iterates_on_its_own(cls: type) -> bool:
    return is_own(cls, "__iter__") or is_own(cls, "_get_iterator")


def is_own(cls: type, method: str) -> bool:
    """Whether `cls` has another `method` than torch's DataLoader."""
    return getattr(cls, method) is not getattr(DataLoader, method)


def _asks_torch(cls: type, *methods: str) -> bool:
    """Whether some method of a subclass calls one of `methods` of super(), or leaves that to torch's __iter__."""
    if "_get_iterator" in methods and not is_own(cls, "__iter__") and len(methods) > 1:
        return _asks_torch(cls, "_get_iterator")
    names = [set(code.co_names) for code in _codes_of(cls)]
    return any("super" in found and found & set(methods) for found in names)


def _codes_of(cls: type) -> Iterator[types.CodeType]:
    for parent in cls.__mro__:
        if parent.__module__.startswith("torch.utils.data") or parent is object:
            continue
        for value in vars(parent).values():
            if isinstance(value, types.FunctionType):
                yield from with_inner(value.__code__)
