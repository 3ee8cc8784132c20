"""Batches that are made and wait to be asked for."""

from __future__ import annotations

from typing import Any

from ..order.task import content_of


class Store:
    """Keeps batches in not more than `room` bytes, by the payloads of the tasks that they were made for."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._batches: dict[bytes, list[Any]] = {}
        self._uses: dict[bytes, int] = {}  # how many ranks will ask for each
        self.count = 0
        self.bytes = 0

    def is_full(self) -> bool:
        """True when a batch like the last ones would not fit."""
        return self._room <= (self.bytes // self.count if self.count else 0)

    def put(self, payload: bytes, without_seeds: bool, buffers: list[Any]) -> None:
        """Keeps a batch; the first that does not fit is the last. `without_seeds`: it is the same for all seeds."""
        size = sum(memoryview(buffer).nbytes for buffer in buffers)
        if size > self._room:
            self._room = 0
            return
        key = _key(payload, without_seeds)
        self._batches[key], self._uses[key] = buffers, 1
        self._room -= size
        self.count += 1
        self.bytes += size

    def shares(self, payload: bytes) -> bool:
        """True when a batch that is there already serves this task as well."""
        key = _key(payload, True)
        if key in self._uses:
            self._uses[key] += 1
        return key in self._uses

    def take(self, payload: bytes) -> list[Any] | None:
        """The batch of this task, if it is here; let go once all ranks have had it."""
        key = next((key for key in (payload, _key(payload, True)) if key in self._uses), None)
        if key is None:
            return None
        self._uses[key] -= 1
        if self._uses[key]:
            return self._batches[key]
        del self._uses[key]
        return self._batches.pop(key)


def _key(payload: bytes, without_seeds: bool) -> bytes:
    return b"*" + content_of(payload) if without_seeds else payload
