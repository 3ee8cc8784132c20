"""A shorter end for ranks that loaded nothing more than what was preloaded.

After Python has taken itself apart, torch's libraries take thousands of operators out of tables one by one. That takes
a rank a quarter of a second, most of it for copying memory that it shares with others until then, and has no effect
outside the process. Where a rank has loaded any other library (CUDA's driver is one, so this is for CPU programs), or
one was put in front of all by LD_PRELOAD, its end is the usual one: these may have something to write.
"""

import atexit
import ctypes
import os

from .stash import Stash

_library = ctypes.CDLL(None)
_preloaded: frozenset[str] | None = None


def remember(stash: Stash, modules: list[str]) -> None:
    """In the preloaded interpreter, when all is imported."""
    global _preloaded
    if not any(name in os.environ for name in ("LD_PRELOAD", "LD_AUDIT")):
        _preloaded = _libraries()
        stash.first(modules[0], lambda: atexit.register(_consider))


def _consider() -> None:
    """Runs after the functions of all that is imported from then on, which were registered later.

    The C library's handlers run in the opposite order of their registration: its buffers are written, then the process
    ends with the status that it was to end with.
    """
    if _preloaded is None or not _libraries() <= _preloaded:
        return
    end = ctypes.cast(_library._exit, ctypes.c_void_p)
    flush = ctypes.cast(_library.fcloseall, ctypes.c_void_p)
    if _library.on_exit(end, None) == 0:
        _library.__cxa_atexit(flush, None, None)


def _libraries() -> frozenset[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = (line.rstrip("\n").partition("/")[2] for line in file)
        return frozenset(path for path in paths if ".so" in path)
