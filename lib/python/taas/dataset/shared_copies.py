"""Memory that processes share on purpose, where a data worker is no fork of the program: a copy that follows the program's values.

With `share_memory_()` and multiprocessing.Array a program tells its workers something (the epoch, say), between its loops. What workers
write there the program would not see, so that it is an error.
"""

from __future__ import annotations

import base64
from typing import Sequence

import numpy

MOST_BYTES = 64 << 10
"""Of one tensor or array: what is larger is no message, but a cache that workers fill."""

_WRITTEN = ("taas: the dataset writes into memory that processes share (share_memory_(), multiprocessing.Array), of which data workers that "
            "are no forks of the program have copies: run with --cpus 0, or return what is written in the samples")


class SharedCopies:
    """In a worker: of one definition, in the order of the pickle."""

    def __init__(self) -> None:
        self._memory: list[numpy.ndarray] = []
        self._given: list[bytes] = []
        self._values: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._memory)

    def add(self, content: bytes) -> numpy.ndarray:
        """A copy of its own of what came."""
        self._memory.append(numpy.frombuffer(bytearray(content), numpy.uint8))
        self._given.append(content)
        return self._memory[-1]

    def take(self, values: list[str]) -> None:
        """What the program has there at the beginning of its loop. Called for each batch, with the same list for those of one loop."""
        if values is not self._values:
            self._values = values
            self._given = [base64.b64decode(value) for value in values]
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


def arrived(content: bytes) -> numpy.ndarray:
    """Called by the pickle that is being loaded."""
    return _arriving.add(content)
