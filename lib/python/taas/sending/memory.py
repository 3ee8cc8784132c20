"""Large memory of a dataset, once for all workers on a machine.

It is a memfd that nobody can change, and of which nothing is left when all that have it are gone.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import pickle
import weakref
from typing import Any, Sequence

from .layout import aligned

_WITHOUT_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_PIECE_BYTES = 64 << 20


def memory_of(buffers: list[pickle.PickleBuffer]) -> DatasetMemory | None:
    """None for no buffers.

    Raises OSError with one line where the machine has no memory, or the process no descriptor.
    """
    try:
        return DatasetMemory(buffers) if buffers else None
    except OSError as error:
        size = sum(buffer.raw().nbytes for buffer in buffers)
        raise OSError(
            error.errno,
            f"taas: no memory for {size / 1e6:.0f} MB of the dataset, which data workers on this machine "
            f"share: {error.strerror}",
        ) from error


class DatasetMemory:
    """Copies of buffers, one behind the other. The descriptor is closed with the object."""

    def __init__(self, buffers: list[pickle.PickleBuffer]) -> None:
        self.places: list[tuple[int, int]] = []
        self.size = 0
        self.fd = os.memfd_create("taas dataset", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        weakref.finalize(self, os.close, self.fd)
        for buffer in buffers:
            self._add(buffer.raw())
        fcntl.fcntl(
            self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
        )

    def _add(self, buffer: memoryview) -> None:
        begin = aligned(self.size)
        self.places.append((begin, buffer.nbytes))
        self.size = begin + buffer.nbytes
        done = 0
        while done < buffer.nbytes:
            done += os.pwrite(self.fd, buffer[done : done + _PIECE_BYTES], begin + done)


def mapped(fd: int, size: int, places: Sequence[Any]) -> list[memoryview]:
    """In a worker: the buffers that begin there and are so long. What is written into them stays in this process."""
    if not places:
        return []
    whole = memoryview(private(fd, size))
    return [whole[begin : begin + length] for begin, length in places]


def private(fd: int, size: int, begin: int = 0) -> mmap.mmap:
    """A part of a file, which can be written to: that stays in this process."""
    prot = mmap.PROT_READ | mmap.PROT_WRITE
    return mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE | _WITHOUT_RESERVE, prot=prot, offset=begin)
