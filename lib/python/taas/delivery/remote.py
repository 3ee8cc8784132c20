"""Batches made by data workers."""

from __future__ import annotations

import os
import traceback
from typing import Any, Callable, Protocol

from ..order.task import Facts, Task
from ..sending import batches
from ..sending.definition import Definition
from ..sending.state import Frame
from .outcome import Failed, Outcome, Ready, Refused, unpickled

_WINDOW_AT_MOST = 1024
_WINDOW_BEFORE_THE_FIRST = 4


class Workers(Protocol):
    """The data workers of a client, as streams see them: RunWorkers."""

    client: Any
    budget_bytes: int
    is_pinned: bool

    def opened(self, stream: RemoteStream) -> None: ...
    def count(self) -> int: ...
    def index_of(self, number: int) -> int: ...
    def name_of(self, index: int) -> str: ...
    def tend(self) -> None: ...
    def pin(self) -> None: ...


class RemoteStream:
    """One epoch's tasks, to be done in the program state of `frame`, by the copies that it names.

    `prepared` is True when workers may have made a batch already. `logical_workers`: how many have something there that
    only they have, so that nothing is made twice, and their tasks stay on one data worker.
    """

    def __init__(
        self,
        workers: Workers,
        definition: Definition,
        frame: Frame,
        prepared: bool = False,
        logical_workers: int = 0,
    ) -> None:
        self._workers = workers
        self.owner = frame.owner
        self._frame = frame.to_bytes()
        self._is_of_shards = False
        self._prepared = prepared
        self._logical_workers = logical_workers
        self._largest = 0
        self._process = os.getpid()
        self._client = workers.client
        self.number = definition.open(self._client)
        workers.opened(self)

    @property
    def is_open(self) -> bool:
        """Until it is closed, by whoever has the loop."""
        return self._client is not None

    def submit(self, task: Task) -> None:
        """What may be prepared has a worker that prepared it."""
        self._is_of_shards = task.turn >= 0
        stays = self._logical_workers > 0
        place = task.place(self._logical_workers) if stays else task.number
        preferred = self._workers.index_of(place) if stays or self._prepared else -1
        self._connected().submit(self.number, self._frame + task.to_bytes(), preferred, stays)

    def next(self, seconds: float) -> Outcome | None:
        """The next task's outcome; None when `seconds` are over first."""
        came = self._connected().next(self.number, seconds)
        if came is None:
            return None
        return _OUTCOMES[type(came).__name__](self, came)

    def window(self) -> int:
        """How many tasks may be under way: what fits into the memory, and some for each worker."""
        least = _WINDOW_BEFORE_THE_FIRST * max(1, self._workers.count())
        if not self._largest:
            return least
        return max(least, min(_WINDOW_AT_MOST, self._workers.budget_bytes // self._largest))

    def statistics(self) -> dict[str, int]:
        """For the launcher."""
        seen = self._client and self._client.statistics(self.number)
        return {
            "buffered": seen.waiting if seen else 0,
            "workers": self._workers.count(),
            "hedged": seen.hedged if seen else 0,
        }

    def tend(self) -> None:
        """Called while the loop waits."""
        self._workers.tend()

    def pin(self) -> None:
        """Called before each batch of a loader whose batches are pinned, or go to a GPU."""
        self._workers.pin()

    def close(self) -> None:
        """What is under way is thrown away. Does nothing in a fork of the process: the client is its parent's."""
        if self._client is not None and self._process == os.getpid():
            self._client.close(self.number)
        self._client = None

    def _connected(self) -> Any:
        if self._client is None:
            raise RuntimeError("taas: the loader was unregistered during this loop over it")
        return self._client

    def abandon(self) -> None:
        """The client is gone."""
        self._client = None

    def _batch(self, came: Any) -> Outcome:
        payload = came.view
        size = payload.nbytes
        self._largest = max(self._largest, size, 1)
        try:
            batch = batches.decode(payload, apart=not self._workers.is_pinned)
        except Exception as error:  # __setstate__ of the program's classes, or what is not there to be imported
            return Failed(error, traceback.format_exc(), "the rank")
        facts = Facts.at_end_of(payload) if self._is_of_shards else None
        return Ready(batch, size, came.digest, facts)

    def _raised(self, came: Any) -> Outcome:
        error = unpickled(came.type, came.text, came.pickled)
        return Failed(error, came.text, self._workers.name_of(came.worker))

    def _undeliverable(self, came: Any) -> Outcome:
        return Refused(came.message)


_OUTCOMES: dict[str, Callable[[RemoteStream, Any], Outcome]] = {
    "Batch": RemoteStream._batch,
    "Raised": RemoteStream._raised,
    "Undeliverable": RemoteStream._undeliverable,
}
