"""Batches that are made and wait to be asked for: in memory, then in a file."""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

from ..order.task import content_of
from ..sending import layout


@dataclass
class Prepared:
    """A batch as it crosses. `uses` counts the ranks that will ask for it."""

    buffers: list[Any]
    size: int
    uses: int = 1


class Store:
    """Keeps batches by what they were asked for with.

    Not more than `memory_bytes` of memory and `disk_bytes` of disk.
    """

    def __init__(self, memory_bytes: int, disk_bytes: int) -> None:
        self._memory_left = memory_bytes
        self._disk_left = disk_bytes
        self._batches: dict[bytes, Prepared] = {}
        self._file: Any = None
        self.count = 0
        self.bytes = 0

    def is_full(self) -> bool:
        """True when a batch like the last ones would not fit."""
        usual = self.bytes // self.count if self.count else 0
        return self._memory_left <= usual and self._disk_left <= usual

    def put(self, payload: bytes, without_seeds: bool, buffers: list[Any]) -> None:
        """Keeps a batch. `without_seeds` is True when it is the same for all seeds. Dropped when there is no room."""
        size = sum(memoryview(buffer).nbytes for buffer in buffers)
        if size <= self._memory_left:
            self._memory_left -= size
        elif size <= self._disk_left:
            self._disk_left -= layout.aligned(size)
            buffers = [self._on_disk(buffers)]
        else:
            return
        self._batches[_key(payload, without_seeds)] = Prepared(buffers, size)
        self.count += 1
        self.bytes += size

    def shares(self, payload: bytes) -> bool:
        """True when a batch that is there already serves this task as well."""
        found = self._batches.get(_key(payload, True))
        if found:
            found.uses += 1
        return found is not None

    def take(self, payload: bytes) -> Prepared | None:
        """The batch of this task, if it is here; room for others once all ranks have had it."""
        for key in (_key(payload, False), _key(payload, True)):
            found = self._batches.get(key)
            if found:
                found.uses -= 1
                if not found.uses:
                    del self._batches[key]
                return found
        return None

    def _on_disk(self, buffers: list[Any]) -> memoryview:
        """The batch's payload in the file: a view of its pages."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="taas-prepared-", dir=os.environ.get("TMPDIR"))
        payload = layout.joined(buffers)
        start = -(-self._file.seek(0, os.SEEK_END) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        self._file.seek(start)
        self._file.write(payload)
        self._file.flush()
        return memoryview(mmap.mmap(self._file.fileno(), len(payload), offset=start, access=mmap.ACCESS_READ))


def _key(payload: bytes, without_seeds: bool) -> bytes:
    return b"*" + content_of(payload) if without_seeds else payload
