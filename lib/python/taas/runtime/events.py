"""What the launcher is told: JSON datagrams. Without a launcher remarks go to stderr."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from typing import Any

_PATIENCE = 0, 200_000
"""Seconds and µs, for a launcher that is busy: its socket takes ten datagrams, from all ranks together."""
_socket: socket.socket | None = None
_said: set[str] = set()


def send(kind: str, wait: bool = False, **said: Any) -> bool:
    """Sends a report, of which docs/data-workers.md lists the kinds.

    False when there is nobody to send it to, or its queue is full and stays so. What tells an end may wait a moment.
    """
    global _socket
    path = os.environ.get("TAAS_EVENTS")
    if not path:
        return False
    try:
        if _socket is None:
            _socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            _socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", *_PATIENCE))
        text = json.dumps({"kind": kind, **said})
        _socket.sendto(text.encode(), 0 if wait else socket.MSG_DONTWAIT, path)
        return True
    except OSError:
        return False


def remark(text: str) -> None:
    """One line for people."""
    if not send("remark", text=text):
        print(f"taas: {text}", file=sys.stderr, flush=True)


def remark_once(text: str) -> None:
    """The same, for what would otherwise be said again and again."""
    if text not in _said:
        _said.add(text)
        remark(text)
