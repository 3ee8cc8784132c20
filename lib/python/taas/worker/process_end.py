"""How processes that belong together end."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import NoReturn

_SET_PARENT_DEATH_SIGNAL = 1


def die_with(parent: int) -> None:
    """In a fork: the kernel ends it when the thread of `parent` that forked it ends."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def end_as(status: int) -> NoReturn:
    """Ends this process in the way of one that it stands for: what looks after it sees what has happened."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(max(code, 1))
