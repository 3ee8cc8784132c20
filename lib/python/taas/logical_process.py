"""A logical worker in a process of its own: what its code sets there, no other logical worker sees.

The plain loader's workers are such processes, too. One data worker may stand in for several of them, of several ranks and epochs.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import socket
import struct
from typing import Any, Callable, ClassVar

import numpy

from . import processes, task
from .answer import Answer, Made, answer_to
from .fetch import Fetcher
from .place_reads import PlaceReads
from .recipe import Recipe

_MOST_IN_A_SOCKET = 128 << 10
_SIZE = struct.Struct("<Q")


class Ended(Exception):
    """The process has died. `status` is what waitpid() said."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the process of a logical worker {processes.described(status)}")
        self.status = status


class LogicalProcess:
    """A fork of this process that makes the batches of one logical worker. Belongs to whoever made it, who ends it.

    `in_child` is called in the fork first, and `begins` there with the place in its batch of each sample that is begun. Raises
    OSError where there can be no further process.
    """

    _all: ClassVar[set[LogicalProcess]] = set()

    def __init__(self, recipe: Recipe, in_child: Callable[[], None], begins: Callable[[int], None] | None = None) -> None:
        self._begins = begins
        self._connection, others = socket.socketpair()
        try:
            self._pid = processes.forked(lambda: self._serve(others, recipe, in_child))
        except OSError:
            self._connection.close()
            raise
        finally:
            others.close()
        self._all.add(self)

    def answer(self, payload: bytes, stream: Any) -> Answer:
        """What comes of the task that `payload` stands for. Raises Ended."""
        try:
            _send(self._connection, (payload, stream))
            answer, sizes, PlaceReads.seen = _received(self._connection)
            if isinstance(answer, Made):
                return answer._replace(buffers=_received_buffers(self._connection, sizes))
            return answer
        except (OSError, EOFError):
            raise Ended(os.waitpid(self._pid, 0)[1]) from None

    def end(self) -> None:
        """It is not needed any more. It ends by itself, and is to be waited for: see has_ended()."""
        self._connection.close()
        self._all.discard(self)

    def has_ended(self) -> bool:
        """Asks the system, without waiting."""
        try:
            return os.waitpid(self._pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True

    def _serve(self, connection: socket.socket, recipe: Recipe, in_child: Callable[[], None]) -> None:
        for other in (self, *self._all):  # they see the end of their connection when this process' parent closes it
            other._connection.close()
        in_child()
        fetcher = Fetcher(recipe)
        fetcher.begins = self._begins
        while True:
            try:
                payload, stream = _received(connection)
            except (OSError, EOFError):
                return
            answer = answer_to(task.from_bytes(payload), fetcher, stream)
            _send_answer(connection, answer)


def _send_answer(connection: socket.socket, answer: Answer) -> None:
    if not isinstance(answer, Made):
        _send(connection, (answer, [], PlaceReads.seen))
        return
    views = [memoryview(buffer) for buffer in answer.buffers]
    _send(connection, (answer._replace(buffers=[]), [view.nbytes for view in views], PlaceReads.seen))
    if sum(view.nbytes for view in views) > _MOST_IN_A_SOCKET:
        _send_file(connection, views)
        return
    for view in views:
        connection.sendall(view)


def _send_file(connection: socket.socket, views: list[memoryview]) -> None:
    """What is large is written to memory once, and mapped by the other side."""
    with open(os.memfd_create("taas-batch"), "wb", buffering=0) as file:
        for view in views:
            _write(file, view)
        socket.send_fds(connection, [b"f"], [file.fileno()])


def _write(file: io.FileIO, view: memoryview) -> None:
    left = view.cast("B") if view.nbytes else view
    while left.nbytes:
        left = left[file.write(left):]


def _received_file(connection: socket.socket, size: int) -> memoryview:
    data, (descriptor, *_), *_ = socket.recv_fds(connection, 1, 1)
    try:
        return memoryview(mmap.mmap(descriptor, size))
    finally:
        os.close(descriptor)


def _send(connection: socket.socket, what: Any) -> None:
    data = pickle.dumps(what, protocol=5)
    connection.sendall(_SIZE.pack(len(data)) + data)


def _received(connection: socket.socket) -> Any:
    size, = _SIZE.unpack(_filled(connection, _SIZE.size))
    return pickle.loads(_filled(connection, size))


def _received_buffers(connection: socket.socket, sizes: list[int]) -> list[Any]:
    size, at, buffers = sum(sizes), 0, []
    memory = _received_file(connection, size) if size > _MOST_IN_A_SOCKET else _filled(connection, size)
    for size in sizes:
        buffers.append(memory[at:at + size])
        at += size
    return buffers


def _filled(connection: socket.socket, size: int) -> memoryview:
    memory = memoryview(numpy.empty(size, numpy.uint8))
    at = 0
    while at < size:
        count = connection.recv_into(memory[at:], 0, socket.MSG_WAITALL)
        if not count:
            raise EOFError
        at += count
    return memory
