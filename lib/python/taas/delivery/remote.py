"""Batches made by data workers."""

from __future__ import annotations

import os
from typing import Any, Callable, Protocol

from ..batch import untree
from ..batch.outcome import Ended, Failed, Outcome, Ready, Refused
from ..dataset.definition import Definition
from ..order.task import Task
from ..program import program_state
from ..worker.errors import unpickled

_WINDOW_AT_MOST = 1024
_WINDOW_BEFORE_THE_FIRST = 4


class Workers(Protocol):
    """The data workers of a client, as streams see them: RunWorkers."""

    client: Any
    budget_bytes: int
    is_pinned: bool

    def opened(self, stream: RemoteStream) -> None: ...
    def count(self) -> int: ...
    def index_of(self, shard: int) -> int: ...
    def name_of(self, index: int) -> str: ...
    def tend(self) -> None: ...
    def pin(self) -> None: ...


class RemoteStream:
    """One epoch's tasks, to be done in the program state `state`.

    `prepared` is True when workers may have made the batch `number` already: number modulo workers. `shares_memory`:
    workers see what the program writes from now on, or it what they write: then nothing is made twice.
    """

    def __init__(
        self,
        workers: Workers,
        definition: Definition,
        state: bytes,
        prepared: bool = False,
        shares_memory: bool = False,
    ) -> None:
        self._workers = workers
        self._state = state
        self._prepared = prepared
        self._shares_memory = shares_memory
        self._largest = 0
        self._process = os.getpid()
        self._client = workers.client
        self.number = definition.open(self._client)
        workers.opened(self)

    def submit(self, task: Task) -> None:
        """Shards have a worker that keeps their place, and so have logical workers that others see the writing of.

        What may be prepared has one that prepared it.
        """
        stays = task.turn >= 0 or self._shares_memory
        preferred = self._workers.index_of(task.place if stays else task.home) if stays or self._prepared else -1
        framed = program_state.framed(self._state, task.to_bytes())
        self._connected().submit(self.number, framed, preferred, stays)

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
        batch = untree.decode(came.description, payload, apart=not self._workers.is_pinned)
        return Ready(batch, size, came.digest, came.description)

    def _raised(self, came: Any) -> Outcome:
        error = unpickled(came.type, came.text, came.pickled)
        return Failed(error, came.text, self._workers.name_of(came.worker))

    def _exhausted(self, came: Any) -> Outcome:
        return Ended()

    def _undeliverable(self, came: Any) -> Outcome:
        return Refused(came.message)


_OUTCOMES: dict[str, Callable[[RemoteStream, Any], Outcome]] = {
    "Batch": RemoteStream._batch,
    "Raised": RemoteStream._raised,
    "Exhausted": RemoteStream._exhausted,
    "Undeliverable": RemoteStream._undeliverable,
}
