"""Memory that processes share on purpose, in data workers.

On the program's machine it is the same memory; elsewhere a copy that follows the program's values.

With `share_memory_()` and multiprocessing.Array a program tells its workers something (the epoch, say), between its
loops. What workers write into a copy the program would not see, so that it is an error.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Sequence

import numpy

from .file_memory import FileMemory

MOST_BYTES = 64 << 10
"""Of one tensor or array that can be copied: what is larger is no message, but a cache that workers fill."""

WHAT = "memory that processes share (share_memory_(), multiprocessing.Array)"

_WRITTEN = (
    f"taas: the dataset writes into {WHAT}, of which data workers on other machines have copies: run without --cpus, "
    "or return what is written in the samples"
)


@dataclass
class SharedMemory:
    """`size` bytes of a file without a name from `offset` on, where it can be found.

    Also what is in it, where that is little.
    """

    file: FileMemory | None
    offset: int
    size: int
    content: bytes | None

    def mapped(self) -> numpy.ndarray | None:
        """None in a process on another machine. Raises RuntimeError there for what has not come with it."""
        memory = self.file.mapped() if self.file else None
        if memory is not None:
            return numpy.frombuffer(memory, numpy.uint8, self.size, self.offset)
        if self.content is None:
            raise RuntimeError(
                f"taas: the dataset has {self.size / 1e6:.1f} MB of {WHAT}, which is for data workers on the machine "
                "of the program: run without --cpus, or clone() it where nobody writes into it"
            )
        return None


class SharedCopies:
    """In a worker: of one definition, those that are not the program's own memory."""

    def __init__(self) -> None:
        self._count = 0
        self._memory: list[numpy.ndarray] = []
        self._numbers: list[int] = []
        self._given: list[bytes] = []
        self._values: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._memory)

    def add(self, shared: SharedMemory) -> numpy.ndarray:
        """The program's memory, or a copy of it."""
        number = self._count
        self._count += shared.content is not None
        if (mapped := shared.mapped()) is not None:
            return mapped
        content = shared.content or b""
        self._memory.append(numpy.frombuffer(bytearray(content), numpy.uint8))
        self._numbers.append(number)
        self._given.append(content)
        return self._memory[-1]

    def take(self, values: list[str]) -> None:
        """What the program has there at the beginning of its loop, in the order of the pickle.

        Called for each batch, with the same list for those of one loop.
        """
        if values is not self._values:
            self._values = values
            self._given = [base64.b64decode(values[number]) for number in self._numbers]
            self._restore()

    def check(self) -> None:
        """Raises RuntimeError where dataset code has written into one of them, and takes that back."""
        if any(memory.data != given for memory, given in zip(self._memory, self._given)):
            self._restore()
            raise RuntimeError(_WRITTEN)

    def _restore(self) -> None:
        for memory, given in zip(self._memory, self._given):
            memory[:] = numpy.frombuffer(given, numpy.uint8)


def values_of(memory: Sequence[numpy.ndarray]) -> list[str]:
    """In the program: for take()."""
    return [base64.b64encode(each.tobytes()).decode() for each in memory]


_arriving = SharedCopies()


def begin() -> SharedCopies:
    """What the pickle that is loaded next adds to: what one that could not be loaded has left is not among it."""
    global _arriving
    _arriving = SharedCopies()
    return _arriving


def arrived(shared: SharedMemory) -> numpy.ndarray:
    """Called by the pickle that is being loaded."""
    return _arriving.add(shared)
