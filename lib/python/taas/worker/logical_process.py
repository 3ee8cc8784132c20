"""A logical worker in a process of its own: what its code sets there, no other logical worker sees.

The plain loader's workers are such processes, too. One data worker may stand in for several of them, of several ranks
and epochs.
"""

from __future__ import annotations

import array
import io
import mmap
import os
import pickle
import socket
import struct
from typing import Any, Callable, ClassVar, Sequence

from ..code.recipe import Recipe
from ..order import task, unseeded
from ..program.place_reads import PlaceReads
from . import processes
from .answer import Answer, Made, answer_to
from .fetch import Fetcher

_MOST_IN_A_PACKET = 128 << 10
_SIZE = struct.Struct("<Q")
_IN_A_FILE = b"f"
_DESCRIPTOR_BYTES = socket.CMSG_SPACE(array.array("i").itemsize)


class Ended(Exception):
    """The process has died. `status` is what waitpid() said."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the process of a logical worker {processes.described(status)}")
        self.status = status


class LogicalProcess:
    """A fork of this process that makes the batches of one logical worker. Belongs to whoever made it, who ends it.

    `in_child` is called in the fork first, and `begins` there with the place in its batch of each sample that is begun.
    Raises OSError where there can be no further process.
    """

    _all: ClassVar[set[LogicalProcess]] = set()

    def __init__(
        self, recipe: Recipe, in_child: Callable[[], None], begins: Callable[[int], None] | None = None
    ) -> None:
        self._begins = begins
        self._status: int | None = None
        self._connection, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._packets = _Packets(self._connection)
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
        self.ask(payload, stream)
        return self.receive()

    def ask(self, payload: bytes, stream: Any) -> None:
        """It makes what it was asked for in this order; a few may be asked for before the first is received.

        Raises Ended.
        """
        try:
            self._packets.send((payload, stream))
        except OSError:
            raise self._why_ended() from None

    def receive(self) -> Answer:
        """The next of the answers that were asked for. Raises Ended."""
        try:
            (answer, sizes, PlaceReads.seen), memory = self._packets.receive()
            return answer._replace(buffers=_split(memory, sizes)) if isinstance(answer, Made) else answer
        except (OSError, EOFError):
            raise self._why_ended() from None

    def end(self) -> None:
        """It is not needed any more. It ends by itself, and is to be waited for: see has_ended()."""
        self._connection.close()
        self._all.discard(self)

    def has_ended(self) -> bool:
        """Asks the system, without waiting."""
        if self._status is None:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:
                return True
            self._status = status if pid else None
        return self._status is not None

    def _why_ended(self) -> Ended:
        if self._status is None:
            self._status = os.waitpid(self._pid, 0)[1]
        return Ended(self._status)

    def _serve(self, connection: socket.socket, recipe: Recipe, in_child: Callable[[], None]) -> None:
        for other in (self, *self._all):  # they see the end of their connection when this process' parent closes it
            other._connection.close()
        in_child()
        unseeded.stay()
        fetcher = Fetcher(recipe)
        fetcher.begins = self._begins
        packets = _Packets(connection)
        while True:
            try:
                (payload, stream), _ = packets.receive()
            except (OSError, EOFError):
                return
            answer = answer_to(task.from_bytes(payload), fetcher, stream)
            views = [memoryview(buffer) for buffer in answer.buffers] if isinstance(answer, Made) else []
            shown = answer._replace(buffers=[]) if isinstance(answer, Made) else answer
            try:
                packets.send((shown, [view.nbytes for view in views], PlaceReads.seen), views)
            except ConnectionError:  # nobody wants it any more
                return


def _split(memory: memoryview, sizes: list[int]) -> list[Any]:
    buffers, at = [], 0
    for size in sizes:
        buffers.append(memory[at : at + size])
        at += size
    return buffers


class _Packets:
    """A small message is one packet. What is large is written to memory once, and mapped by the other side."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._memory = bytearray(_MOST_IN_A_PACKET)

    def send(self, what: Any, views: Sequence[memoryview] = ()) -> None:
        data = pickle.dumps(what, protocol=5)
        parts: list[Any] = [_SIZE.pack(len(data)), data, *views]
        if len(data) + sum(view.nbytes for view in views) + _SIZE.size <= _MOST_IN_A_PACKET:
            self._connection.sendmsg(parts)
            return
        with open(os.memfd_create("taas-batch"), "wb", buffering=0) as file:
            for part in parts:
                _write(file, memoryview(part))
            socket.send_fds(self._connection, [_IN_A_FILE], [file.fileno()])

    def receive(self) -> tuple[Any, memoryview]:
        """What was sent, and the bytes behind it. Raises EOFError when the other side is gone."""
        count, ancillary, *_ = self._connection.recvmsg_into([self._memory], _DESCRIPTOR_BYTES)
        if not count:
            raise EOFError
        memory = _mapped(ancillary[0][2]) if ancillary else memoryview(bytearray(memoryview(self._memory)[:count]))
        (size,) = _SIZE.unpack_from(memory)
        start = _SIZE.size + size
        return pickle.loads(memory[_SIZE.size : start]), memory[start:]


def _write(file: io.FileIO, view: memoryview) -> None:
    left = view.cast("B") if view.nbytes else view
    while left.nbytes:
        left = left[file.write(left) :]


def _mapped(descriptors: bytes) -> memoryview:
    (descriptor,) = array.array("i", descriptors)
    try:
        return memoryview(mmap.mmap(descriptor, 0))
    finally:
        os.close(descriptor)
