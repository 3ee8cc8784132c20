"""Turns the forked process into a rank, as spawn() of taas-run makes one from a fresh process.

The order of things and the numbers of steps are those of lib/proc/spawn/spawn.cpp.
"""

import os
import struct
import sys
from collections.abc import Callable

from . import fresh_state, linux, standard_input
from .output import Held
from .server import Request
from .settings import Settings
from .stash import Stash

_STREAMS, _SESSION, _PARENT, _LIMIT, _READ_ONLY, _DIRECTORY, _PROCESSORS = range(7)
_CANNOT_EXECUTE = 127


def become(request: Request, settings: Settings, held: Held, stash: Stash) -> None:
    """Returns when the program may run; a step that fails is told to taas-run and ends the process."""
    if not request.control.recv(1):
        os._exit(_CANNOT_EXECUTE)
    _do(request, _STREAMS, lambda: _connect(request))
    _do(request, _SESSION, os.setsid)
    _do(request, _PARENT, lambda: linux.die_with_parent(settings.agent))
    if request.folder:
        _do(request, _DIRECTORY, lambda: os.chdir(request.folder))
    if request.processors:
        _do(request, _PROCESSORS, lambda: linux.bind_to(request.processors))
    if request.rules is not None:
        _do(request, _READ_ONLY, lambda: linux.restrict_to(request.rules))
    _take_environment(request.environment)
    _take_arguments([os.fsdecode(word) for word in request.argv])
    fresh_state.renew(stash)
    request.control.close()  # taas-run reads the streams from now on
    held.replay()


def _do(request: Request, step: int, action: Callable[[], object]) -> None:
    try:
        action()
    except OSError as error:
        request.control.send(struct.pack("ii", step, error.errno or 0))
        os._exit(_CANNOT_EXECUTE)


def _connect(request: Request) -> None:
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
        os.close(stream)
    standard_input.look_again()


def _take_environment(entries: list[bytes]) -> None:
    """All of them in their order, also those that nobody could set: one without a name, one twice, one that has no "=".
    The C library and children find them as execve() would have handed them over, os.environ as Python reads them."""
    linux.set_environment(entries)
    variables = os.environ._data  # type: ignore[attr-defined]
    variables.clear()
    for entry in entries:
        name, is_variable, value = entry.partition(b"=")
        if is_variable:
            variables.setdefault(name, value)


def _take_arguments(words: list[str]) -> None:
    """They differ from this process's own where a rank's number is in them."""
    kept = len(sys.argv) - 1
    sys.argv[1:] = words[len(words) - kept :] if kept else []
    sys.orig_argv[:] = words
