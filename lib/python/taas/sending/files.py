"""Arrays that are mapped files (numpy.memmap, and views of one): mapped again where the same file is.

What a data worker writes into them stays in its process.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy

from .memory import private

_SAMPLES = 64
_SAMPLE_BYTES = 4096
_LEAST_BYTES = 16 << 20
"""Smaller files go by their bytes."""


@dataclass
class FileMemory:
    """`size` bytes of a file from `begin` on, which is where a page begins, as the process that sends it sees them.

    `place` is the machine, the device and the inode; `modified` are whole seconds.
    """

    path: str
    begin: int
    size: int
    place: tuple[str, int, int]
    modified: int
    samples: bytes
    _mapped: Any = field(default=None, repr=False)

    def memory(self) -> Any:
        """A writable buffer, one for all that lies in it.

        Raises RuntimeError where the file is another one, or not there.
        """
        if self._mapped is None:
            self._mapped = self._map()
        return self._mapped

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_mapped": None}

    def _map(self) -> Any:
        try:
            with open(self.path, "rb", buffering=0) as file:
                if self._is(file.fileno()):
                    return private(file.fileno(), self.size, self.begin)
        except OSError:
            pass
        raise RuntimeError(
            f"taas: the dataset has {self.path} ({self.size / 1e6:.0f} MB) mapped into memory, and this machine "
            "does not have the same file there: copy it there with its time (rsync -a), or open it in __getitem__"
        )

    def _is(self, fd: int) -> bool:
        """On the same machine by its inode; elsewhere by its size, its time and some of its bytes."""
        status = os.fstat(fd)
        if status.st_size < self.begin + self.size:
            return False
        if self.place == (_machine(), status.st_dev, status.st_ino):
            return True
        return int(status.st_mtime) == self.modified and _samples_of(fd, self.begin, self.size) == self.samples


def reduced(array: numpy.ndarray, known: dict[int, FileMemory | None]) -> Any:
    """For reducer_override: an array that lies in a file; NotImplemented for others.

    What a copy-on-write mapping (mode "c") has changed is in no file: those go by their values. `known` are the files
    that one pickle has, by what maps them.
    """
    root = _root_of(array)
    if root is None or root.mode == "c" or not root.filename or not array.size:
        return NotImplemented
    mapped = getattr(root, "_mmap")
    if id(mapped) not in known:
        known[id(mapped)] = _file_of(root, mapped)
    if (file := known[id(mapped)]) is None:
        return NotImplemented
    offset = root.offset - file.begin + _address_of(array) - _address_of(root)
    is_memmap = type(array) is numpy.memmap
    return array_of_file, (file, offset, array.dtype, array.shape, array.strides, array.flags.writeable, is_memmap)


def array_of_file(
    file: FileMemory,
    offset: int,
    dtype: numpy.dtype,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    is_writable: bool,
    is_memmap: bool,
) -> numpy.ndarray:
    """A numpy.memmap is one as pickled, which can be written to: its slices are arrays."""
    kind = numpy.memmap if is_memmap else numpy.ndarray
    array = numpy.ndarray.__new__(kind, shape, dtype, file.memory(), offset, strides)
    if not (is_writable or is_memmap):
        array.flags.writeable = False
    return array


def _root_of(array: Any) -> numpy.memmap | None:
    """The memmap that the array is a view of."""
    root = None
    while isinstance(array, numpy.ndarray):
        if isinstance(array, numpy.memmap) and getattr(array, "_mmap") is not None:
            root = array
        array = array.base
    return root if isinstance(array, mmap.mmap) else None


def _file_of(root: numpy.memmap, mapped: mmap.mmap) -> FileMemory | None:
    """None for a small one, and where the path has another file by now, or none."""
    if len(mapped) < _LEAST_BYTES:
        return None
    begin = root.offset - root.offset % mmap.ALLOCATIONGRANULARITY
    samples = _samples(lambda at: mapped[at : at + _SAMPLE_BYTES], len(mapped))
    try:
        with open(str(root.filename), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if _samples_of(file.fileno(), begin, len(mapped)) != samples:
                return None
    except OSError:
        return None
    place = (_machine(), status.st_dev, status.st_ino)
    return FileMemory(str(root.filename), begin, len(mapped), place, int(status.st_mtime), samples)


def _address_of(array: numpy.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _samples_of(fd: int, begin: int, size: int) -> bytes:
    return _samples(lambda at: os.pread(fd, min(_SAMPLE_BYTES, size - at), begin + at), size)


def _samples(read: Callable[[int], bytes], size: int) -> bytes:
    """A digest of some pages, the first and the last among them."""
    digest = hashlib.blake2b(digest_size=16)
    last = max(0, size - _SAMPLE_BYTES)
    for number in range(_SAMPLES):
        digest.update(read(last * number // (_SAMPLES - 1)))
    return digest.digest()


def _machine() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
