"""Turns a process that was forked from a session's interpreter into a launcher with an interpreter of its own below it.

Ranks have to be children of the launcher that watches them, and the interpreter that they are forked from has to be below it. So it
is the session that the launcher comes from, by three processes that are forked one from the other: the keeper, its agent, and the
interpreter, which stays what it is. The other two execute taas-run, as lib/proc/family/keeper.hpp has them."""

import contextlib
import fcntl
import os
import resource
import signal
import socket
from typing import NamedTuple

from . import linux
from .rank import connect, do, Step
from .server import Request
from .settings import SOCKET, Settings

_ORDER = b"TAAS_SESSION_ORDER"  # as in apps/taas-run/session
_INHERITED = b"TAAS_SESSION"
_KEEP = b"--keep"
_CANNOT_EXECUTE = 127
_FIRST_FREE = 16


class Order(NamedTuple):
    """How the command `taas-run --in NAME` was started."""

    program: bytes  # the file of taas-run
    mask: int  # umask
    limits: list[tuple[int, int, int]]  # resource, soft, hard
    ignores_hangup: bool
    cpus: list[int]  # none: not known

    @classmethod
    def take(cls, environment: list[bytes]) -> "Order":
        """Out of the variables that the launcher is to have."""
        entry = environment.pop()
        program, mask, hangup, cpus, *limits = entry.removeprefix(_ORDER + b"=").split(b"\n")
        return cls(program, int(mask), [tuple(map(int, limit.split())) for limit in limits],  # type: ignore[misc]
                   hangup == b"1", [int(cpu) for cpu in cpus.split()])


def begin(request: Request, settings: Settings) -> Settings:
    """Returns in the new interpreter only, with what it serves with."""
    if not request.control.recv(1):
        os._exit(_CANNOT_EXECUTE)
    order = Order.take(request.environment)
    do(request, Step.SESSION, os.setsid)
    do(request, Step.PARENT, lambda: linux.die_with_parent(settings.agent))
    do(request, Step.DIRECTORY, lambda: os.chdir(request.folder))
    do(request, Step.LIMIT, lambda: _become_like_command(order))
    lifeline = _sockets()
    link = _sockets()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # none is lost before the keeper waits for it
    linux.adopt_orphans()
    keeper = os.getpid()
    agent = os.fork()
    if agent:
        with contextlib.suppress(OSError):  # it may have executed taas-run already, with a group of its own
            os.setpgid(agent, agent)
        _execute(request, order, [order.program, _KEEP, b"%d" % agent, b"%d" % lifeline[0].fileno()], lifeline[0])
    os.setpgid(0, 0)
    do(request, Step.PARENT, lambda: linux.die_with_parent(keeper))
    linux.adopt_orphans()
    agent = os.getpid()
    interpreter = os.fork()
    if interpreter:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        numbers = (link[0].fileno(), lifeline[1].fileno(), interpreter, keeper)
        request.environment.append(_INHERITED + b"=%d %d %d %d" % numbers)
        _execute(request, order, request.argv, link[0], lifeline[1])
    linux.die_with_parent(agent)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.dup2(link[1].fileno(), SOCKET, inheritable=False)
    for each in (*lifeline, *link, request.control):
        each.close()
    for stream in request.streams:
        os.close(stream)
    return settings._replace(agent=agent, is_session=False)


def _become_like_command(order: Order) -> None:
    """What a process has from the one that started it, besides streams, folder and environment."""
    os.umask(order.mask)
    if order.cpus:
        os.sched_setaffinity(0, order.cpus)
    for kind, soft, hard in order.limits:
        highest = resource.getrlimit(kind)[1]
        if highest != resource.RLIM_INFINITY and os.geteuid() != 0:
            hard = highest if hard == resource.RLIM_INFINITY else min(hard, highest)
            soft = hard if soft == resource.RLIM_INFINITY else min(soft, hard)
        resource.setrlimit(kind, (soft, hard))
    if order.ignores_hangup:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _sockets() -> tuple[socket.socket, socket.socket]:
    """Their numbers are none of those that the interpreter has a use for."""
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)]
    return socket.socket(fileno=ends[0]), socket.socket(fileno=ends[1])


def _execute(request: Request, order: Order, words: list[bytes], *inherited: socket.socket) -> None:
    connect(request.streams)
    for each in inherited:
        each.set_inheritable(True)
    try:
        linux.execute(order.program, words, request.environment)
    except OSError as error:
        os.write(2, b"taas-run: cannot execute %s: %s\n" % (order.program, os.fsencode(os.strerror(error.errno or 0))))
    os._exit(_CANNOT_EXECUTE)
