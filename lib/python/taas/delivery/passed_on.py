"""Which batch a program has, where its loader's own __iter__ stands between.

That may read ahead, leave batches out, or make others.
"""

from __future__ import annotations

import collections
import threading
from types import GeneratorType
from typing import Any, Iterator

_UNKNOWN = (
    "state_dict: {name} gives batches that it has made of others, and has been given {ahead} more than it gave: how "
    "far the loop is cannot be told; give the batches on as they are, or read none ahead"
)


class PassedOn:
    """Of one loop. Batches may be given in another thread than that in which they are passed on."""

    def __init__(self, name: str, state: dict[str, Any]) -> None:
        self._name = name
        self._state = state
        self._lock = threading.Lock()
        self._given: collections.deque[tuple[Any, dict[str, Any]]] = collections.deque()
        self._ahead = 0
        self.has_ended = False

    def begins(self, state: dict[str, Any]) -> None:
        """The delivery's loop, whose start is this `state` of the loader."""
        with self._lock:
            if not self._given:
                self._state = state

    def given(self, batch: Any, state: dict[str, Any]) -> None:
        """The loader's __iter__ has one more, behind which the loader's state is this."""
        with self._lock:
            self._given.append((batch, state))

    def state(self) -> dict[str, Any]:
        """The loader's, behind the batch that the program has had last.

        Raises RuntimeError when that cannot be told.
        """
        with self._lock:
            if self._ahead:
                raise RuntimeError(_UNKNOWN.format(name=self._name, ahead=self._ahead))
            return self._state

    def followed(self, batches: GeneratorType) -> Iterator[Any]:
        """The same batches."""
        try:
            for batch in batches:
                self._pass(batch)
                yield batch
            self.has_ended = True
        finally:
            batches.close()
            with self._lock:
                self._given.clear()

    def _pass(self, batch: Any) -> None:
        with self._lock:
            place = next((place for place, (given, _) in enumerate(self._given) if given is batch), None)
            if place is None:  # made of what was given: of one batch, or else there is no telling
                place = len(self._given) - 1
                self._ahead = max(self._ahead, place)
            for _ in range(place + 1):
                self._state = self._given.popleft()[1]
