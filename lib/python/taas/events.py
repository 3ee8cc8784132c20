"""What the launcher is told: JSON datagrams. Without a launcher remarks go to stderr."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING, Any

from .identity import rank

if TYPE_CHECKING:
    from .progress import Progress
    from .registered import Registered

_EVERY_SECONDS = 1.0
_PATIENCE = 0, 200_000  # seconds and µs, for a launcher that is busy: its socket takes ten datagrams, from all ranks together
_socket: socket.socket | None = None
_said: set[str] = set()


def send(event: dict[str, Any], wait: bool = False) -> bool:
    """Sends `event`; False when there is nobody to send it to, or its queue is full and stays so: what tells an end may wait a moment."""
    global _socket
    path = os.environ.get("TAAS_EVENTS")
    if not path:
        return False
    try:
        if _socket is None:
            _socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            _socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", *_PATIENCE))
        _socket.sendto(json.dumps(event).encode(), 0 if wait else socket.MSG_DONTWAIT, path)
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


def loader_at(registered: Registered, progress: Progress, done: bool, is_left: bool) -> None:
    """How a loader does: once a second, and at the end of each loop."""
    now = time.monotonic()
    if not done and not is_left and now - _last.get(registered.name, 0.0) < _EVERY_SECONDS:
        return
    _last[registered.name] = now
    if not os.environ.get("TAAS_EVENTS"):
        return
    progress.clock()
    totals, statistics = registered.totals, progress.feed.stream.statistics()
    send({"kind": "data", "rank": rank(), "loader": registered.name, "samples": totals.samples,
          "batches": totals.batches, "bytes": totals.bytes, "seconds": round(totals.seconds, 3),
          "waited": round(totals.waited, 4), **statistics, "done": done}, wait=done)
