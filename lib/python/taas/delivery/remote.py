"""Batches made by data workers."""

from __future__ import annotations

import collections
import contextlib
import itertools
import os
import traceback
from typing import TYPE_CHECKING, Any

import torch

from ..order.task import Facts, Task
from ..sending import batches
from ..sending.definition import Definition
from ..sending.state import Frame
from .device import CudaCopies, copies_to
from .outcome import Failed, Outcome, Ready, Refused, unpickled
from .pinning import PinnedCopies

if TYPE_CHECKING:
    from .run_workers import RunWorkers

BATCHES_AHEAD = 2
"""So many are on the GPU, or pinned, or on their way, beside the one that the loop has."""

_WINDOW_AT_MOST = 1024
_WINDOW_BEFORE_THE_FIRST = 4


def _outside_inference() -> contextlib.AbstractContextManager[Any]:
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else contextlib.nullcontext()


class RemoteStream:
    """One epoch's tasks, to be done in the program state of `frame`, by the copies that it names.

    `prepared` is True when workers may have made a batch already. `logical_workers`: how many have something there that
    only they have, so that nothing is made twice, and their tasks stay on one data worker. With a `device` the batches
    come on that GPU, and where it `pins` in pinned memory: the next ones are copied while the loop is at one. Nothing
    is done on the GPU before the first one is here.
    """

    def __init__(
        self,
        workers: RunWorkers,
        definition: Definition,
        frame: Frame,
        prepared: bool = False,
        logical_workers: int = 0,
        device: torch.device | None = None,
        pins: bool = False,
    ) -> None:
        self._workers = workers
        self.owner = frame.owner
        self._frame = frame.to_bytes()
        self._is_of_shards = False
        self._prepared = prepared
        self._logical_workers = logical_workers
        self._device = device
        self._pins = pins
        self._copies: CudaCopies | PinnedCopies | None = None
        self._ahead: collections.deque[tuple[Outcome, Any]] = collections.deque()
        self._under_way = 0
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
        self._under_way += 1

    def next(self, seconds: float) -> Outcome | None:
        """The next task's outcome; None when `seconds` are over first."""
        if self._device is None and not self._pins:
            return self._came(seconds)
        with _outside_inference():  # a batch ahead may be for another part of the program
            if not self._ahead and not self._take(seconds):
                return None
            for _, started in itertools.islice(self._ahead, 1, None):
                with contextlib.suppress(Exception):
                    self._copying().go_on(started)
            while len(self._ahead) <= BATCHES_AHEAD and self._under_way and self._take(0.0):
                pass
            outcome = self._finished(*self._ahead[0])
        self._ahead.popleft()  # whatever interrupts what is before this loses no batch
        return outcome

    def _finished(self, outcome: Outcome, started: Any) -> Outcome:
        if not isinstance(outcome, Ready):
            return outcome
        try:
            copies = self._copying()
            outcome.batch = copies.finish(copies.start(outcome.batch) if started is None else started)
            return outcome
        except Exception as error:
            return Failed(error, traceback.format_exc(), "the rank")

    def _take(self, seconds: float) -> bool:
        """One more outcome, the copy of whose batch is asked for. Where that fails it is tried again in its turn."""
        if (outcome := self._came(seconds)) is None:
            return False
        started = None
        if isinstance(outcome, Ready):
            with contextlib.suppress(Exception):
                started = self._copying().start(outcome.batch)
        self._ahead.append((outcome, started))
        return True

    def _copying(self) -> Any:
        if self._copies is None:
            self._copies = PinnedCopies() if self._device is None else copies_to(self._device)
        return self._copies

    def _came(self, seconds: float) -> Outcome | None:
        came = self._connected().next(self.number, seconds)
        if came is None:
            return None
        self._under_way -= 1
        kind = type(came).__name__
        if kind == "Batch":
            return self._batch(came)
        if kind == "Raised":
            error = unpickled(came.type, came.text, came.pickled)
            return Failed(error, came.text, self._workers.name_of(came.worker))
        return Refused(came.message)

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

    def close(self) -> None:
        """What is under way is thrown away. Does nothing in a fork of the process: the client is its parent's."""
        if self._process == os.getpid():
            if self._copies is not None:
                with contextlib.suppress(Exception):  # the GPU has failed, as the program will notice
                    self._copies.close()
            self._ahead.clear()
            if self._client is not None:
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
            batch = batches.decode(payload)
        except Exception as error:  # __setstate__ of the program's classes, or what is not there to be imported
            return Failed(error, traceback.format_exc(), "the rank")
        facts = Facts.at_end_of(payload) if self._is_of_shards else None
        return Ready(batch, size, came.digest, facts)
