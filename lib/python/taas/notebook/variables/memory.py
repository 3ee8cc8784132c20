"""The file beside the pickle that has the memory of tensors and arrays."""

from __future__ import annotations

import mmap
import os
from typing import Any, BinaryIO

from ...runtime import own_files
from ...sending.layout import aligned


class Memory:
    """What is to be in the file: buffers at places, each of them once. Copies nothing before write()."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[tuple[int, Any]] = []
        self._places: dict[Any, int] = {}

    def place(self, buffer: Any, key: Any = None) -> int:
        """Where `buffer` will be; the same place for the same key."""
        if key is not None and key in self._places:
            return self._places[key]
        place = aligned(self.size)
        self._parts.append((place, buffer))
        self.size = place + memoryview(buffer).nbytes
        if key is not None:
            self._places[key] = place
        return place

    def write(self, file: BinaryIO) -> None:
        """All of it. Raises OSError where there is no room."""
        for place, buffer in self._parts:
            file.seek(place)
            file.write(memoryview(buffer).cast("B"))
        file.truncate(self.size)


def mapped(path: str) -> Any:
    """The file as writable memory; what is written stays in this process."""
    with own_files.open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            return bytearray()
        return mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
