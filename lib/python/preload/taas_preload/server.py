"""The life of the preloaded interpreter: processes that wait for orders of taas-run, and make a rank for each."""

import array
import os
import socket
from typing import NamedTuple

from .settings import SOCKET, Settings

READY = "ready"
_MOST_DESCRIPTORS = 8


class Request(NamedTuple):
    """One rank. Descriptors are this process's own."""

    control: socket.socket  # to taas-run: one byte comes when it watches the process; a failure goes back
    streams: tuple[int, int, int]
    rules: int | None  # a Landlock rule set
    argv: list[bytes]
    folder: bytes  # empty: as it is
    processors: list[int]  # empty: as it is
    environment: list[bytes]


def serve(settings: Settings, ready: str) -> Request:
    """Tells taas-run what is ready, and returns in each new rank with what is wanted of it.

    Ranks are to be children of taas-run, which is the nearest subreaper: a process in between forks all those of one
    generation and then ends, so that they become its. The one for the next generation is made beforehand. fork() of the
    C library is used, not a bare system call with other flags, for the sake of all who have to know of it: the
    allocator, OpenBLAS, torch, Python's locks.
    """
    link = socket.socket(fileno=SOCKET)
    os.set_inheritable(SOCKET, False)
    between = os.fork() if ready == READY else None
    if between != 0:
        link.send(ready.encode(errors="replace"))
    while between != 0:
        if between is None or os.waitpid(between, 0)[1] != 0:
            os._exit(0)  # nothing is wanted any more, or something is wrong
        link.send(b"released")
        between = os.fork()
    return _fork_ranks(link)


def _fork_ranks(link: socket.socket) -> Request:
    """The life of the process in between. Returns in each rank."""
    while True:
        message, ancillary, _, _ = link.recvmsg(64, socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS), socket.MSG_CMSG_CLOEXEC)
        if message != b"rank":
            os._exit(0 if message == b"release" else 1)
        descriptors = _descriptors(ancillary)
        born = os.fork()
        if born == 0:
            link.close()
            return _read(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        link.send(f"started {born}".encode())


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    numbers = array.array("i")
    for _, _, data in ancillary:
        numbers.frombytes(data)
    return list(numbers)


def _read(descriptors: list[int]) -> Request:
    """The order's words lie in a file: counts, and texts that end with a zero byte."""
    words_file, control, *rest = descriptors
    streams = (rest[0], rest[1], rest[2])
    rules = rest[3] if len(rest) > 3 else None
    with open(words_file, "rb") as file:
        words = file.read().split(b"\0")
    count = int(words[0])
    argv, folder, environment = words[1 : count + 1], words[count + 1], words[count + 3 : -1]
    processors = [int(number) for number in words[count + 2].split(b",") if number]
    return Request(socket.socket(fileno=control), streams, rules, argv, folder, processors, environment)
