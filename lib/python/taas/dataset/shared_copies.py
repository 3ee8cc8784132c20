"""Memory that processes share on purpose, where a data worker is no fork of the program: a copy that follows the program's values.

With `share_memory_()` and multiprocessing.Array a program tells its workers something (the epoch, say), between its loops. What workers
write there the program would not see, so that it is an error.
"""

from __future__ import annotations

import base64
from typing import Any

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

    def add(self, content: bytes) -> numpy.ndarray:
        """A copy of its own of what came."""
        self._memory.append(numpy.frombuffer(bytearray(content), numpy.uint8))
        self._given.append(content)
        return self._memory[-1]

    def take(self, values: list[str]) -> None:
        """What the program has there at the beginning of its loop."""
        for number, value in enumerate(values):
            self._given[number] = base64.b64decode(value)
            self._memory[number][:] = numpy.frombuffer(self._given[number], numpy.uint8)

    def check(self) -> None:
        """Raises RuntimeError where dataset code has written into one of them."""
        if any(memory.tobytes() != given for memory, given in zip(self._memory, self._given)):
            raise RuntimeError(_WRITTEN)


def values_of(memory: list[numpy.ndarray]) -> list[str]:
    """In the program: for take()."""
    return [base64.b64encode(each.tobytes()).decode() for each in memory]


arriving = SharedCopies()
"""What a pickle that is being loaded adds to; taken by whoever loads it."""


def taken() -> Any:
    """The copies of the pickle that was just loaded; None without any."""
    global arriving
    found, arriving = arriving, SharedCopies()
    return found if found._memory else None
