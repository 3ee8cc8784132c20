"""What is worked out once and kept, within a number of bytes."""

from __future__ import annotations

from typing import Any


class Bounded:
    """Remembers values by key. When what is kept would be larger than `limit_bytes`, it begins anew."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._values: dict[Any, Any] = {}
        self.bytes = 0

    def get(self, key: Any) -> Any:
        """None when it is not there."""
        return self._values.get(key)

    def add(self, key: Any, value: Any, size: int) -> None:
        """Keeps a value; `size` is about how many bytes it takes with its key."""
        if self.bytes + size > self._limit:
            self._values.clear()
            self.bytes = 0
        if size <= self._limit:
            self._values[key] = value
            self.bytes += size
