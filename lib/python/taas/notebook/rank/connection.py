"""A rank's end of the private socket to the kernel."""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import threading
from typing import Any, TextIO

from ..files import socket_path
from ..marks import mark


class Connection:
    """Without a kernel that can be reached (a rank of another machine), everything here says so and does nothing."""

    def __init__(self, path: str) -> None:
        self._rank = int(os.environ.get("RANK") or 0)
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._process = os.getpid()
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
