"""Turns the forked process into a rank, as spawn() of taas-run makes one from a fresh process. The order of things and the numbers
of steps are those of lib/proc/spawn/spawn.cpp."""

import enum
import os
import struct
import sys
from collections.abc import Callable

from . import fresh_state, linux, names, standard_streams
from .output import Held
from .server import Request
from .settings import Settings

_CANNOT_EXECUTE = 127


class Step(enum.IntEnum):
    STREAMS, SESSION, PARENT, LIMIT, READ_ONLY, DIRECTORY = range(6)


def become(request: Request, settings: Settings, held: Held) -> None:
    """Returns when the program may run; a step that fails is told to taas-run and ends the process."""
    if not request.control.recv(1):
        os._exit(_CANNOT_EXECUTE)
    do(request, Step.STREAMS, lambda: _use_streams(request))
    do(request, Step.SESSION, os.setsid)
    do(request, Step.PARENT, lambda: linux.die_with_parent(settings.agent))
    if request.folder:
        do(request, Step.DIRECTORY, lambda: os.chdir(request.folder))
    if request.rules is not None:
        do(request, Step.READ_ONLY, lambda: linux.restrict_to(request.rules))
    names.take(request.argv, request.environment, settings)
    _take_environment(request.environment)
    _take_arguments([os.fsdecode(word) for word in request.argv])
    fresh_state.renew()
    request.control.close()  # taas-run reads the streams from now on
    held.replay()


def do(request: Request, step: Step, action: Callable[[], object]) -> None:
    """One that fails is told, and ends the process."""
    try:
        action()
    except OSError as error:
        request.control.send(struct.pack("ii", step, error.errno or 0))
        os._exit(_CANNOT_EXECUTE)


def _use_streams(request: Request) -> None:
    connect(request.streams)
    standard_streams.look_again()


def connect(streams: tuple[int, int, int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)


def _take_environment(entries: list[bytes]) -> None:
    """As Python reads them: there may be one without a name, one twice, one that has no "="."""
    variables = os.environ._data  # type: ignore[attr-defined]
    variables.clear()
    for entry in entries:
        name, is_variable, value = entry.partition(b"=")
        if is_variable:
            variables.setdefault(name, value)


def _take_arguments(words: list[str]) -> None:
    """They differ from this process's own where a rank's number is in them."""
    kept = len(sys.argv) - 1
    sys.argv[1:] = words[len(words) - kept:] if kept else []
    sys.orig_argv[:] = words
