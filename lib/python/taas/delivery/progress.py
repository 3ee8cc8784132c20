"""How far a loop has come."""

from __future__ import annotations

import os
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Protocol

from ..order.task import Task
from ..runtime import events, native
from ..runtime.identity import rank
from .outcome import Ready

_CHAIN = struct.Struct("<QQ")
_REPORT_EVERY_SECONDS = 1.0


@dataclass
class Totals:
    """Of one loader, over all its loops."""

    name: str
    samples: int = 0
    batches: int = 0
    bytes: int = 0
    waited: float = 0.0
    seconds: float = 0.0
    skipped: int = 0
    reported: float = 0.0


class Place(Protocol):
    """Where a loop is in its order."""

    def position(self) -> dict[str, Any]: ...
    def digest(self) -> str | None: ...


@dataclass
class Progress:
    """Of one loop. `start` is what position.start_of found when it began.

    `digest` is chained over all batches that the loop has had of data workers: two loops with equal digests had equal
    bytes.
    """

    epoch: int
    place: Place
    statistics: Callable[[], dict[str, int]]
    start: dict[str, Any]
    totals: Totals
    enough: int = 0
    batch_size: int = 1
    in_batches: bool = True
    """The sampler gives a list of indices for each batch."""
    digest: int = 0
    _since: float = field(default_factory=time.monotonic)

    def counted(self, samples: int) -> None:
        """One more batch is handed out."""
        self.totals.samples += samples
        self.totals.batches += 1

    def count(self, task: Task, ready: Ready) -> None:
        """The same of data workers."""
        of_task = len(task.indices) if self.in_batches and hasattr(task.indices, "__len__") else self.batch_size
        self.counted(ready.facts.samples if ready.facts else of_task)
        self.totals.bytes += ready.size
        self.digest = native.digest(_CHAIN.pack(self.digest, ready.digest))

    def is_enough(self) -> bool:
        """True when the loader has given as many samples as were asked for with --units."""
        return 0 < self.enough <= self.totals.samples

    def report(self, done: bool = False, is_left: bool = False) -> None:
        """Tells the launcher how the loader does: once a second, and when a loop ends or is left."""
        totals, now = self.totals, time.monotonic()
        if not done and not is_left and now - totals.reported < _REPORT_EVERY_SECONDS:
            return
        totals.reported = now
        if not os.environ.get("TAAS_EVENTS"):
            return
        totals.seconds += now - self._since
        self._since = now
        events.send(
            "data",
            wait=done,
            rank=rank(),
            loader=totals.name,
            samples=totals.samples,
            batches=totals.batches,
            bytes=totals.bytes,
            seconds=round(totals.seconds, 3),
            waited=round(totals.waited, 4),
            **self.statistics(),
            done=done,
        )
