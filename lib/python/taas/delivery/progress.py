"""How far a loop has come."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass, field
from typing import Any

from ..batch.outcome import Ready
from ..order.common_stream import CommonStream
from ..order.order import MapOrder, ShardOrder
from ..order.task import Task
from ..runtime import native
from .feed import Feed

_CHAIN = struct.Struct("<QQ")


@dataclass
class Totals:
    """Of one loader, over all its loops."""

    samples: int = 0
    batches: int = 0
    bytes: int = 0
    waited: float = 0.0
    seconds: float = 0.0
    skipped: int = 0


@dataclass
class Progress:
    """Of one loop. `start` is what position.start_of found when it began.

    `digest` is chained over all batches that the loop has had: two loops with equal digests had equal bytes.
    """

    epoch: int
    order: MapOrder | ShardOrder
    feed: Feed
    start: dict[str, Any]
    totals: Totals
    shared: CommonStream | None = None  # of an iterable dataset
    enough: int = 0
    batch_size: int = 1
    digest: int = 0
    has_prefetched: bool = False  # the next loop's first batches
    _since: float = field(default_factory=time.monotonic)

    def clock(self) -> None:
        """Adds the time since the last call to the loader's own."""
        now = time.monotonic()
        self.totals.seconds += now - self._since
        self._since = now

    def count(self, task: Task, ready: Ready) -> None:
        """One more batch is handed out."""
        of_task = len(task.indices) if hasattr(task.indices, "__len__") else self.batch_size
        self.totals.samples += of_task if ready.samples is None else ready.samples
        self.totals.batches += 1
        self.totals.bytes += ready.size
        self.digest = native.digest(_CHAIN.pack(self.digest, ready.digest) + ready.description.encode())

    def is_enough(self) -> bool:
        """True when the loader has given as many samples as were asked for with --units."""
        return 0 < self.enough <= self.totals.samples
