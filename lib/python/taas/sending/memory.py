"""Large memory of a dataset, once for all workers on a machine.

It is a memfd that nobody can change, and of which nothing is left when all that have it are gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import pickle
import weakref
from typing import Any, Sequence

from .layout import spans_of

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
        raws = [buffer.raw() for buffer in buffers]
        self.places = spans_of(raws)
        self.size = self.places[-1][1] if raws else 0
        self.fd = os.memfd_create("taas dataset", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        weakref.finalize(self, os.close, self.fd)
        for raw, (begin, _) in zip(raws, self.places):
            self._write(raw, begin)
        fcntl.fcntl(
            self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
        )

    def _write(self, buffer: memoryview, begin: int) -> None:
        done = 0
        while done < buffer.nbytes:
            done += os.pwrite(self.fd, buffer[done : done + _PIECE_BYTES], begin + done)


class ReceivedMemory:
    """Memory of a definition in a worker: `places` say where each buffer begins and ends. The descriptor is its own.

    Workers that have received the same, under the same `name`, have it once: the first one tells the others by a link
    beside the plan, "PID/FD/INODE", where it is.
    """

    def __init__(self, fd: int, size: int, places: Sequence[Any], name: str = "") -> None:
        self._fd, self._size, self._places = fd, size, places
        weakref.finalize(self, os.close, fd)
        plan = os.environ.get("TAAS_DATA_PLAN")
        self._link = os.path.join(os.path.dirname(plan), f"memory-{name}") if plan and name else ""

    def map(self) -> list[memoryview]:
        """The buffers. What is written into them stays in this process."""
        if self._link:
            with contextlib.suppress(OSError, ValueError):
                self._meet_others()
        whole = private(self._fd, self._size)
        weakref.finalize(whole, self._is_mapped_no_more)  # until then others find the descriptor open
        view = memoryview(whole)
        return [view[begin:end] for begin, end in self._places]

    def _meet_others(self) -> None:
        own = f"{os.getpid()}/{self._fd}/{os.fstat(self._fd).st_ino}"
        link, self._link = self._link, ""
        try:
            os.symlink(own, link)
        except FileExistsError:
            if not self._takes(os.readlink(link)):
                os.unlink(link)
                os.symlink(own, link)

    def _takes(self, of_another: str) -> bool:
        """False where it is gone, or not what the link says."""
        pid, number, inode = map(int, of_another.split("/"))
        try:
            found = os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY)
        except OSError:
            return False
        try:
            own, other = os.fstat(self._fd), os.fstat(found)
            is_it = (other.st_dev, other.st_ino, other.st_size) == (own.st_dev, inode, own.st_size)
            if is_it:
                os.dup2(found, self._fd, inheritable=False)
            return is_it
        finally:
            os.close(found)

    def _is_mapped_no_more(self) -> None:
        pass


def private(fd: int, size: int, begin: int = 0) -> mmap.mmap:
    """A part of a file, which can be written to: that stays in this process."""
    prot = mmap.PROT_READ | mmap.PROT_WRITE
    return mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE | _WITHOUT_RESERVE, prot=prot, offset=begin)
