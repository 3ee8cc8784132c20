"""What the launcher is told of a loader: how its loops get on."""

from __future__ import annotations

import os
import time

from ..runtime import events
from ..runtime.identity import rank
from .progress import Progress

_EVERY_SECONDS = 1.0
_last: dict[str, float] = {}


def loader_at(name: str, progress: Progress, done: bool, is_left: bool) -> None:
    """How a loader does: once a second, and at the end of each loop."""
    now = time.monotonic()
    if not done and not is_left and now - _last.get(name, 0.0) < _EVERY_SECONDS:
        return
    _last[name] = now
    if not os.environ.get("TAAS_EVENTS"):
        return
    progress.clock()
    totals = progress.totals
    events.send(
        events.DataProgress(
            rank(),
            name,
            totals.samples,
            totals.batches,
            totals.bytes,
            round(totals.seconds, 3),
            round(totals.waited, 4),
            **progress.statistics(),
            done=done,
        ),
        wait=done,
    )
