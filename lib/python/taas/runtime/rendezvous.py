"""What ranks have to agree on before their framework can talk: one rank says it, through the run's own store."""

from __future__ import annotations

import os
import socket
import struct

_SET, _GET, _WAIT = 1, 3, 6
"""Requests of the TCPStore protocol: c10d/store/TCPStoreBackend.hpp in torch's headers."""
_GREETING = struct.pack("<BI", 0, 0x3C85F7CE)


class NoStore(RuntimeError):
    """This process has no launcher that serves a store."""


class Store:
    """A connection to the store at MASTER_ADDR:MASTER_PORT that the launcher serves, with the few requests needed here.

    Raises NoStore without a launcher, and OSError when the store does not answer in `seconds`.
    """

    def __init__(self, seconds: float = 300.0) -> None:
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            raise NoStore("no store of a launcher: start the program with taas-run, without --store rank0")
        place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        self._socket = socket.create_connection(place, timeout=seconds)
        self._socket.sendall(_GREETING)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    @property
    def own_address(self) -> str:
        """Where this machine is reached by the others, as far as this connection tells."""
        return str(self._socket.getsockname()[0])

    def set(self, key: str, value: str) -> None:
        """Everybody who waits for `key` goes on."""
        self._socket.sendall(bytes([_SET]) + _blob(key) + _blob(value))

    def get(self, key: str) -> str:
        """The value, as soon as there is one."""
        self._socket.sendall(bytes([_WAIT]) + struct.pack("<Q", 1) + _blob(key))
        self._read(1)
        self._socket.sendall(bytes([_GET]) + _blob(key))
        (size,) = struct.unpack("<Q", self._read(8))
        return self._read(size).decode()

    def join(self, rank: int) -> None:
        """Tells the launcher that this rank has come up; ranks with torch do so by themselves."""
        self.set(f"taas/joined/{rank}", "")

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the launcher's store has closed the connection")
            data += part
        return data


def hold_port(address: str) -> socket.socket:
    """A socket that keeps a free port for a server of this process: bound, never listened on.

    The kernel gives the port to nobody, and a server that sets SO_REUSEADDR, as servers do, can bind it all the
    same.
    """
    held = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((address, 0))
    return held


def endpoint(address: str, port: int) -> str:
    """address:port, with brackets for IPv6."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _blob(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
