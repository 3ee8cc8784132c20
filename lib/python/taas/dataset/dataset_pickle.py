"""A loader's parts as a pickle, for data workers.

Memory that is a file goes as that file, other large memory beside it.

Tensors that share memory in the program share it in the worker, and so does all that lies in one file.
"""

from __future__ import annotations

import io
import pickle
from multiprocessing.managers import BaseProxy
from typing import Any, NamedTuple

import numpy
import torch

from ..batch import rebuild
from ..batch.regions import bytes_at
from ..code import pickling
from ..code.pickling import Unpicklable, first_line
from . import shared_copies
from .file_memory import FileMemory, FilesInMemory
from .shared_copies import SharedMemory

_BESIDE_BYTES = 64 << 10
"""Less memory goes in the pickle."""


class Sent(NamedTuple):
    """`beside` are the buffers that the pickle leaves out, in order.

    `shared` is memory that processes share, of which it has the bytes.
    """

    pickle: bytes
    beside: list[pickle.PickleBuffer]
    shared: list[numpy.ndarray]


def dumped(what: Any, is_for_here: bool) -> Sent:
    """`is_for_here`: workers are all on this machine. Raises Unpicklable."""
    file = io.BytesIO()
    pickler = _Pickler(file, is_for_here)
    try:
        pickler.dump(what)
    except Exception as error:
        raise Unpicklable(f"{first_line(error)}{pickling.hint()}") from error
    return Sent(file.getvalue(), pickler.beside, pickler.shared)


def load(data: Any, beside: list[Any]) -> Any:
    """In a worker.

    `beside` are writable buffers, which belong to what is made; so do classes that come by value, which would otherwise
    be those of the definition before, with other attributes.
    """
    pickling.forget_classes()
    return pickle.loads(data, buffers=beside)


class _Pickler(pickling.ByValue):
    def __init__(self, file: Any, is_for_here: bool) -> None:
        super().__init__(file, protocol=5, buffer_callback=self._is_small)
        self.beside: list[pickle.PickleBuffer] = []
        self.shared: list[numpy.ndarray] = []
        self._is_for_here = is_for_here
        self._files: FilesInMemory | None = None
        self._storages: dict[int, torch.UntypedStorage] = {}

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is numpy.memmap or kind is numpy.ndarray:
            return self._array(value)
        if isinstance(value, BaseProxy):
            raise TypeError(
                f"a multiprocessing.Manager's {kind.__name__} is for processes that the program starts itself: run "
                "without --cpus, or give the dataset what is in it"
            )
        if kind is torch.storage.TypedStorage and value._untyped_storage.device.type == "cpu":
            return rebuild.typed_storage, (self._same(value._untyped_storage), value.dtype)
        if kind is torch.UntypedStorage and value.device.type == "cpu":
            return self._storage(self._same(value))
        return super().reducer_override(value)

    def _is_small(self, buffer: pickle.PickleBuffer) -> bool:
        is_small = buffer.raw().nbytes <= _BESIDE_BYTES
        if not is_small:
            self.beside.append(buffer)
        return is_small

    def _same(self, storage: torch.UntypedStorage) -> torch.UntypedStorage:
        """One object for all tensors that lie in it, so that it is pickled once."""
        return self._storages.setdefault(storage._cdata, storage)

    def _storage(self, storage: torch.UntypedStorage) -> Any:
        begin, size = storage.data_ptr(), storage.nbytes()
        if size and self._in_memory().is_shared(begin):
            return shared_storage, (self._shared(storage, begin, begin + size),)
        found = self._find(begin, begin + size) if size > _BESIDE_BYTES else None
        if found:
            return storage_of_file, (*found, size)
        elements: Any = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
        return storage_of, (pickle.PickleBuffer(elements),)

    def _array(self, array: numpy.ndarray) -> Any:
        begin = end = array.__array_interface__["data"][0]
        for size, step in zip(array.shape, array.strides):
            begin, end = begin + min(0, (size - 1) * step), end + max(0, (size - 1) * step)
        if array.size and not array.dtype.hasobject and self._in_memory().is_shared(begin):
            shared = self._shared(array, begin, end + array.itemsize)
            first = array.__array_interface__["data"][0] - begin
            return shared_array, (shared, first, array.dtype, array.shape, array.strides)
        is_large = type(array) is numpy.memmap or array.nbytes > _BESIDE_BYTES
        found = self._find(begin, end + array.itemsize) if array.size and is_large else None
        if not found:
            return array.__reduce_ex__(5) if is_large else NotImplemented
        file, offset = found
        is_memmap = type(array) is numpy.memmap
        is_writable = array.flags.writeable or is_memmap
        first = offset + array.__array_interface__["data"][0] - begin
        return array_of_file, (file, first, array.dtype, array.shape, array.strides, is_writable, is_memmap)

    def _find(self, begin: int, end: int) -> tuple[FileMemory, int] | None:
        return self._in_memory().find(begin, end)

    def _in_memory(self) -> FilesInMemory:
        self._files = self._files or FilesInMemory()
        return self._files

    def _shared(self, owner: Any, begin: int, end: int) -> SharedMemory:
        """With its bytes now, if they are few.

        Raises TypeError for what can neither be found by workers nor sent for each loop.
        """
        file, offset = self._in_memory().find_unnamed(begin, end) or (None, 0)
        size, content = end - begin, None
        if size <= shared_copies.MOST_BYTES:
            self.shared.append(bytes_at(owner, begin, end))
            content = self.shared[-1].tobytes()
        elif not (file and self._is_for_here):
            raise TypeError(
                f"{size / 1e6:.1f} MB of {shared_copies.WHAT} are for processes of this machine alone: run without "
                "--cpus, or clone() it where nobody writes into it"
            )
        return SharedMemory(file, offset, size, content)


def shared_storage(shared: SharedMemory) -> torch.UntypedStorage:
    """The same memory, or a copy that follows the program's."""
    return torch.from_numpy(shared_copies.arrived(shared)).untyped_storage()


def shared_array(
    shared: SharedMemory, first: int, dtype: numpy.dtype, shape: tuple[int, ...], strides: tuple[int, ...]
) -> numpy.ndarray:
    """The same; the first element lies at the offset `first`."""
    return numpy.ndarray(shape, dtype, shared_copies.arrived(shared).data, first, strides)


def array_of_file(
    file: FileMemory,
    offset: int,
    dtype: numpy.dtype,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    is_writable: bool,
    is_memmap: bool,
) -> numpy.ndarray:
    """A numpy.memmap is one as pickled: its slices are arrays."""
    kind = numpy.memmap if is_memmap else numpy.ndarray
    array = numpy.ndarray.__new__(kind, shape, dtype, file.memory(), offset, strides)
    if not is_writable:
        array.flags.writeable = False
    return array


def storage_of_file(file: FileMemory, offset: int, size: int) -> torch.UntypedStorage:
    """The bytes of the file as torch has them."""
    return torch.frombuffer(file.memory(), dtype=torch.uint8, count=size, offset=offset).untyped_storage()


def storage_of(memory: Any) -> torch.UntypedStorage:
    """In memory of its own where it is little: that can be resized."""
    view = memoryview(memory)
    if view.nbytes > _BESIDE_BYTES:
        return torch.frombuffer(view, dtype=torch.uint8).untyped_storage()
    storage = torch.UntypedStorage(view.nbytes)
    if view.nbytes:
        torch.empty(0, dtype=torch.uint8).set_(storage).copy_(torch.frombuffer(view, dtype=torch.uint8))
    return storage
