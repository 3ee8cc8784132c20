"""What an object looks like now, so that it can be told later whether anything in it has changed since."""

from __future__ import annotations

import collections
import copyreg
import os
import pickle
import threading
import types
from typing import Any, Iterable

import numpy
import torch

from ..code import sendable
from ..code.frozen import FROZEN, are_equal, are_frozen, are_one
from ..code.program_globals import is_own
from ..code.reach import closed_over
from ..runtime import native
from .file_memory import FilesInMemory, SeenByOthers

_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_NAMED = (types.ModuleType, types.BuiltinFunctionType, type(threading.Lock()), type(threading.RLock()))
_MOST_OBJECTS = 20_000
_FILE_BYTES = 64 << 20  # to read less takes as long as to find out whether it is a file


class TooMuch(Exception):
    """To look at every part of an object would take too long, or is not possible."""


class Snapshot:
    """All that `what` consists of, down to its last part: attributes, items, the bytes of tensors and arrays, code.

    Two snapshots are equal only when nothing has changed in between. They may differ where only objects were exchanged
    for equal ones. Numbers, text, and tuples of them are kept, so that a list of a million names is compared in
    milliseconds; what tensors hold is not kept.

    Raises TooMuch above 20,000 objects that could change by themselves, `most_bytes` of tensors and arrays, and for
    what cannot be looked into: open files, connections, memory of a GPU.
    """

    def __init__(
        self,
        what: list[Any],
        most_bytes: int,
        before: Snapshot | None = None,
        most_objects: int = _MOST_OBJECTS,
        as_pickled: bool = False,
    ) -> None:
        """`before`, of the same objects, makes it faster.

        `as_pickled`: objects are what their __getstate__ says; else it is not called.
        """
        self.shares_memory = False
        """Whether some of it is memory that other processes see."""
        self._before = before._lists if before else []
        self._plain: list[Any] = []
        self._lists: list[list[Any]] = []
        self._named: list[Any] = []
        self._bytes_left = most_bytes
        self._most_objects = most_objects
        self._as_pickled = as_pickled
        self._known: dict[int, tuple[int, Any]] = {}
        self._places: dict[int, int] = {}
        self._files: FilesInMemory | None = None
        self._seen_by_others: SeenByOthers | None = None
        self._private: set[tuple[int, int]] = set()
        self._private_before = before._private if before else set()
        waiting = list(what)
        while waiting:
            waiting += self._parts(waiting.pop())
        self._known.clear()
        self._before, self._files, self._seen_by_others, self._private_before = [], None, None, set()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Snapshot)
            and are_equal(self._plain, other._plain)
            and are_one(self._named, other._named)
            and len(self._lists) == len(other._lists)
            and all(map(are_equal, self._lists, other._lists))
        )

    def _parts(self, value: Any) -> list[Any]:
        """Notes what is seen of `value` itself; returns what it holds, which is to be looked at next."""
        if type(value) in FROZEN:
            self._plain.append(value)
            return []
        if id(value) in self._known:
            self._plain.append(self._known[id(value)][0])
            return []
        self._known[id(value)] = len(self._known), value
        if len(self._known) > self._most_objects:
            raise TooMuch
        return self._look(value)

    def _look(self, value: Any) -> list[Any]:
        kind: Any = type(value)
        if isinstance(value, _CONTAINERS):
            return self._items(value)
        if isinstance(value, numpy.ndarray):
            return self._array(value)
        if (
            type(value) in (torch.Tensor, torch.nn.Parameter)
            and value.layout == torch.strided
            and not value.is_quantized
        ):
            return self._tensor(value)
        if isinstance(value, torch.Generator):
            return [value.get_state().numpy().tobytes()]
        if isinstance(value, pickle.PickleBuffer):
            return [numpy.frombuffer(value.raw(), numpy.uint8)]
        if isinstance(value, (types.FunctionType, type)):
            return self._code(value)
        if isinstance(value, types.MethodType):
            return [value.__func__, value.__self__]
        if isinstance(value, _NAMED):
            self._named.append(value)
            return []
        if not self._as_pickled and sendable.has_only_attributes(kind):
            return self._attributes(value)
        return _reduced(value)

    def _attributes(self, value: Any) -> list[Any]:
        """Without calling its __getstate__.

        Where it has one, an open file or the like among them is as long as it is there.
        """
        slots = {name: getattr(value, name) for name in sendable.slots_of(type(value)) if hasattr(value, name)}
        held = {**getattr(value, "__dict__", {}), **slots}
        if sendable.has_getstate(type(value)):
            closed = {name: part for name, part in held.items() if not _can_be_looked_into(part)}
            self._named += closed.values()
            held = {name: part for name, part in held.items() if name not in closed}
        return [type(value), held]

    def _items(self, value: Any) -> list[Any]:
        items = [*dict.keys(value), *dict.values(value)] if isinstance(value, dict) else list(value)
        own = [] if type(value) in _CONTAINERS else [type(value), getattr(value, "__dict__", None)]
        self._plain.append(len(items))
        before = self._before[len(self._lists)] if len(self._lists) < len(self._before) else None
        if before is not None and are_one(items, before):
            items = before  # the same list: it is not compared again
        if items is before or are_frozen(items):
            self._lists.append(items)
            return own
        if len(items) > self._most_objects:
            raise TooMuch
        return items + own

    def _array(self, value: numpy.ndarray) -> list[Any]:
        self._plain.append(
            (self._place(value.__array_interface__["data"][0]), str(value.dtype), value.shape, value.strides)
        )
        self._note_shared(id(value), value.__array_interface__["data"][0])
        own = [] if type(value) in (numpy.ndarray, numpy.memmap) else [type(value), getattr(value, "__dict__", None)]
        if value.dtype == object:
            return [value.reshape(-1).tolist(), *own]
        if value.dtype.hasobject:
            raise TooMuch
        if value.flags.c_contiguous and self._is_in_file(value.__array_interface__["data"][0], value.nbytes):
            return own
        self._reserve(value.nbytes)
        self._read(numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8))
        return own

    def _tensor(self, value: torch.Tensor) -> list[Any]:
        storage = value.untyped_storage()
        if storage.device.type != "cpu":
            raise TooMuch
        self._plain.append(
            (
                self._place(storage.data_ptr()),
                value.dtype,
                value.shape,
                value.stride(),
                value.storage_offset(),
                value.requires_grad,
                value.is_conj(),
                value.is_neg(),
            )
        )
        self._note_shared(storage._cdata, storage.data_ptr())
        first, length = 0, storage.nbytes()
        if value.is_contiguous():
            first, length = int(value.storage_offset()) * value.element_size(), value.numel() * value.element_size()
        if self._is_in_file(storage.data_ptr() + first, length):
            return []
        self._reserve(length)
        every = torch.empty(0, dtype=torch.uint8).set_(storage)
        self._read(every[first : first + length].numpy())
        return [vars(value), value.grad if value.is_leaf else None]

    def _place(self, address: int) -> int:
        """The same number for what lies at the same place: arrays and tensors that share memory."""
        return self._places.setdefault(address, len(self._places))

    def _is_in_file(self, address: int, length: int) -> bool:
        """Notes the file as it is now, when so much memory is a mapped file: workers map it, too."""
        if length < _FILE_BYTES:
            return False
        found = self._in_memory().find(address, address + length)
        if found:
            status = os.stat(found[0].path)
            self._plain.append((found[0].path, found[1], status.st_size, status.st_mtime_ns))
        return found is not None

    def _note_shared(self, owner: int, address: int) -> None:
        """What an object has at an address stays what it is: the kernel is asked once."""
        if self.shares_memory:
            return
        if (owner, address) not in self._private_before:
            self._seen_by_others = self._seen_by_others or SeenByOthers()
            if self._seen_by_others.has(address):
                self.shares_memory = True
                return
        self._private.add((owner, address))

    def _in_memory(self) -> FilesInMemory:
        self._files = self._files or FilesInMemory()
        return self._files

    def _reserve(self, count: int) -> None:
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise TooMuch

    def _read(self, buffer: numpy.ndarray) -> None:
        self._plain.append(native.digest(buffer))

    def _code(self, value: Any) -> list[Any]:
        """Code cannot change, but what a function has beside it can, and which functions a class has."""
        if isinstance(value, types.FunctionType):
            self._named.append(value.__code__)
            return [*closed_over(value), value.__defaults__, value.__kwdefaults__, vars(value)]
        self._named += vars(value).values() if is_own(value.__module__) else [value]
        return list(value.__bases__)


def _can_be_looked_into(value: Any) -> bool:
    if isinstance(value, (*_CONTAINERS, *_NAMED, numpy.ndarray, torch.Tensor, types.FunctionType, type)):
        return True
    kind: Any = type(value)
    if kind in FROZEN or sendable.has_only_attributes(kind):
        return True
    try:
        _reduced(value)
    except TooMuch:
        return False
    return True


def _reduced(value: Any) -> list[Any]:
    """What pickle and copy take an object for: its class and its state, as it says itself."""
    try:
        if (reduced := sendable.reduced(value)) is not NotImplemented:
            return list(reduced)
        reducer = copyreg.dispatch_table.get(type(value))
        reduced = reducer(value) if reducer else value.__reduce_ex__(5)
    except Exception as error:
        raise TooMuch from error
    if isinstance(reduced, str):
        return [reduced]
    parts: Iterable[Any] = reduced
    return [list(part) if hasattr(part, "__next__") else part for part in parts]
