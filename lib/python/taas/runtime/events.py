"""What the launcher is told: JSON datagrams. Without a launcher remarks go to stderr."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from dataclasses import asdict, dataclass

_PATIENCE = (
    0,
    200_000,
)  # seconds and µs, for a launcher that is busy: its socket takes ten datagrams, from all ranks together
_socket: socket.socket | None = None
_said: set[str] = set()


@dataclass(frozen=True)
class DataProgress:
    """How a loader has done, over all its loops: `waited` of its `seconds` were spent waiting for batches."""

    rank: int
    loader: str
    samples: int
    batches: int
    bytes: int
    seconds: float
    waited: float
    buffered: int
    workers: int
    hedged: int
    done: bool


@dataclass(frozen=True)
class DataWork:
    """How much of its `seconds` a data worker was `busy`."""

    worker: int
    batches: int
    busy: float
    seconds: float


@dataclass(frozen=True)
class DataPrepared:
    """What a data worker has made before ranks start."""

    worker: int
    batches: int
    bytes: int
    done: bool


@dataclass(frozen=True)
class Remark:
    """One line for people."""

    text: str


Report = DataProgress | DataWork | DataPrepared | Remark
_KINDS = {DataProgress: "data", DataWork: "work", DataPrepared: "prepared", Remark: "remark"}


def send(report: Report, wait: bool = False) -> bool:
    """Sends `report`; False when there is nobody to send it to, or its queue is full and stays so.

    What tells an end may wait a moment.
    """
    global _socket
    path = os.environ.get("TAAS_EVENTS")
    if not path:
        return False
    try:
        if _socket is None:
            _socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            _socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", *_PATIENCE))
        text = json.dumps({"kind": _KINDS[type(report)], **asdict(report)})
        _socket.sendto(text.encode(), 0 if wait else socket.MSG_DONTWAIT, path)
        return True
    except OSError:
        return False


def remark(text: str) -> None:
    """One line for people."""
    if not send(Remark(text)):
        print(f"taas: {text}", file=sys.stderr, flush=True)


def remark_once(text: str) -> None:
    """The same, for what would otherwise be said again and again."""
    if text not in _said:
        _said.add(text)
        remark(text)
