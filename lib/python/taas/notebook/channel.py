"""The kernel's end of the private socket on which ranks send what is more than text: one JSON object a line."""

from __future__ import annotations

import json
import selectors
import socket
from typing import Any, Callable

from .files import socket_path
from .lines import Lines

_PIECE = 1 << 18


class Channel:
    """Listens at `path`. `on_message` gets each message, in the order in which its rank has sent it."""

    def __init__(
        self, path: str, selector: selectors.BaseSelector, on_message: Callable[[dict[str, Any]], None]
    ) -> None:
        self._selector, self._on_message = selector, on_message
        self._listener = socket.socket(socket.AF_UNIX)
        with socket_path.short(path) as place:
            self._listener.bind(place)
        self._listener.listen(128)
        self._listener.setblocking(False)
        self._begun: dict[socket.socket, Lines] = {}
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def drain(self) -> None:
        """Takes what has been sent so far: who sends a message and then prints has sent it when the text is here."""
        self._accept()
        for connection in list(self._begun):
            self._read(connection)

    def close(self) -> None:
        """Nobody sends any more."""
        for connection in list(self._begun):
            self._forget(connection)
        self._selector.unregister(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            connection.setblocking(False)
            self._begun[connection] = Lines()
            self._selector.register(connection, selectors.EVENT_READ, lambda of=connection: self._read(of))

    def _read(self, connection: socket.socket) -> None:
        while connection in self._begun:
            try:
                data = connection.recv(_PIECE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                return self._forget(connection)
            for line in self._begun[connection].add(data):
                self._on_message(json.loads(line))

    def _forget(self, connection: socket.socket) -> None:
        del self._begun[connection]
        self._selector.unregister(connection)
        connection.close()
