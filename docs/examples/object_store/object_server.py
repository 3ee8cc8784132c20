"""An object store on this machine that answers as slowly as a distant one: GET /objects/17 after --latency-ms.

    python object_server.py --latency-ms 50 --port 8017
    curl http://127.0.0.1:8017/served        # how many objects each connection has been sent

Any number of requests wait side by side, as in a real store: the latency is the server's, never a queue in front of it.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json

OBJECTS = 1_000_000
PIXELS = 28 * 28


def content(index: int) -> bytes:
    """The object `index`: a byte with its label, and the pixels of its image. Always the same."""
    return bytes([index % 10]) + hashlib.shake_128(b"object %d" % index).digest(PIXELS)


class ObjectServer:
    """Answers each request after the latency. One task for each connection."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._served: list[int] = []  # objects, by connection

    async def serve(self, port: int) -> None:
        server = await asyncio.start_server(self._serve_one, "127.0.0.1", port, backlog=1024)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = len(self._served)
        self._served.append(0)
        try:
            while True:
                writer.write(await self._answer(await reader.readuntil(b"\r\n\r\n"), connection))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # the client has left, or does not speak HTTP
        finally:
            writer.close()

    async def _answer(self, request: bytes, connection: int) -> bytes:
        path = request.split(b" ", 2)[1] if request.startswith(b"GET ") else b""
        folder, _, name = path.rpartition(b"/")
        if path == b"/served":
            return http(b"200 OK", json.dumps(self._served).encode())
        if folder != b"/objects" or not name.isdigit() or int(name) >= OBJECTS:
            return http(b"404 Not Found", b"no such object\n")
        await asyncio.sleep(self._latency)
        self._served[connection] += 1
        return http(b"200 OK", content(int(name)))


def http(status: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--latency-ms", type=float, default=50.0, help="from a request to its answer (default: 50)")
    parser.add_argument("--port", type=int, default=0, help="0: any free one; the address is printed")
    options = parser.parse_args()
    try:
        asyncio.run(ObjectServer(options.latency_ms / 1000).serve(options.port))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
