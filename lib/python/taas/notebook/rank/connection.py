"""A rank's end of the private socket to the kernel."""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import threading
from collections import deque
from typing import Any, TextIO

from ..files import socket_path
from ..lines import Lines
from ..marks import mark

_PIECE = 1 << 16


class Connection:
    """Without a kernel that can be reached (a rank of another machine), everything here says so and does nothing."""

    def __init__(self, path: str) -> None:
        self._rank = int(os.environ.get("RANK") or 0)
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._begun, self._received = Lines(), deque[bytes]()
        self._socket: socket.socket | None = socket.socket(socket.AF_UNIX)
        try:
            with socket_path.short(path) as place:
                self._socket.connect(place)
        except OSError:
            self._socket = None

    def send(self, kind: str, **content: Any) -> bool:
        """True when the kernel will have it."""
        return self._send(kind, f"{next(self._numbers)}", content)

    def send_in_place(self, kind: str, **content: Any) -> bool:
        """The same for what is to appear where the next printed text would."""
        number = f"{next(self._numbers)}"
        if not self._send(kind, number, content):
            return False
        self.mark(number, sys.__stdout__)
        return True

    def mark(self, what: str, stream: TextIO | None) -> None:
        """Puts a mark into one of this process' real streams; nothing where there is none."""
        if stream is not None:
            sys.stdout.flush()
            stream.flush()
            with self._lock:
                os.write(1 if stream is sys.__stdout__ else 2, mark(what).encode())

    def send_at_end(self, kind: str, **content: Any) -> None:
        """The same, with a mark in both streams: the kernel then knows that it has all text before it."""
        number = f"{next(self._numbers)}"
        if self._send(kind, number, content):
            for stream in (sys.__stdout__, sys.__stderr__):
                self.mark(number, stream)

    def receive(self) -> dict[str, Any] | None:
        """Waits for the kernel's next message. None: the kernel has gone, or this process is a fork of the rank."""
        while not self._received and os.getpid() == self._process:
            try:
                data = self._socket.recv(_PIECE) if self._socket else b""
            except OSError:
                data = b""
            if not data:
                return None
            self._received.extend(self._begun.add(data))
        return json.loads(self._received.popleft()) if self._received else None

    def _send(self, kind: str, number: str, content: dict[str, Any]) -> bool:
        if self._socket is None or os.getpid() != self._process:
            return False
        line = json.dumps({"kind": kind, "rank": self._rank, "number": number, **content}).encode() + b"\n"
        try:
            with self._lock:
                self._socket.sendall(line)
            return True
        except OSError:  # the kernel has gone, and this process will soon
            return False
