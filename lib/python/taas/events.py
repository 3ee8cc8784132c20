"""What the launcher is told: JSON datagrams that are never waited for. Without a launcher remarks go to stderr."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from .identity import rank

if TYPE_CHECKING:
    from .progress import Progress
    from .registered import Registered

_EVERY_SECONDS = 1.0
_socket: socket.socket | None = None
_said: set[str] = set()


def send(event: dict[str, Any]) -> bool:
    """Sends `event`; False when there is nobody to send it to, or its queue is full."""
    global _socket
    path = os.environ.get("TAAS_EVENTS")
    if not path:
        return False
    try:
        if _socket is None:
            _socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        _socket.sendto(json.dumps(event).encode(), path)
        return True
    except OSError:
        return False


def remark(text: str) -> None:
    """One line for people."""
    if not send({"kind": "remark", "text": text}):
        print(f"taas: {text}", file=sys.stderr, flush=True)


def remark_once(text: str) -> None:
    """The same, for what would otherwise be said again and again."""
    if text not in _said:
        _said.add(text)
        remark(text)


_last: dict[str, float] = {}


def loader_at(registered: Registered, progress: Progress, done: bool) -> None:
    """How a loader does: once a second, and at the end of each loop."""
    now = time.monotonic()
    if not done and now - _last.get(registered.name, 0.0) < _EVERY_SECONDS:
        return
    _last[registered.name] = now
    if not os.environ.get("TAAS_EVENTS"):
        return
    progress.clock()
    totals, statistics = registered.totals, progress.feed.stream.statistics()
    send({"kind": "data", "rank": rank(), "loader": registered.name, "samples": totals.samples,
          "batches": totals.batches, "bytes": totals.bytes, "seconds": round(totals.seconds, 3),
          "waited": round(totals.waited, 4), **statistics, "done": done})
