"""Tells taas-run when the rank's main program has raised and its process does not end yet.

Python waits for threads, and then runs what was registered with `atexit`. From outside that looks like a program that
has caught its exception and waits for others.
"""

import atexit
import os
import sys
from collections.abc import Iterator
from typing import Any

from .stash import Stash

_SUFFIX = ".raised"  # as in lib/node/process/rank_process.cpp
_MOST_NAMES = 3
_LONGEST_NAME = 80
_AT_EXIT = "functions that run at Python's end (atexit)"


def watch(stash: Stash) -> None:
    """In a rank, when its environment is there."""
    beside = os.environ.get("TORCHELASTIC_ERROR_FILE")
    threading: Any = stash.find("threading")
    if beside and type(getattr(threading, "_threading_atexits", None)) is list:
        threading._threading_atexits = _Ends(threading._threading_atexits, beside + _SUFFIX)  # type: ignore[union-attr]


class _Ends(list):  # type: ignore[type-arg]
    """Python goes through this list, backwards, when the main program is over, and before it waits for threads.

    What is done here has returned by then, so that no frame of this file is in a traceback.
    """

    def __init__(self, functions: list[Any], path: str) -> None:
        super().__init__(functions)
        self._process = os.getpid()
        self._path = path

    def __reversed__(self) -> Iterator[Any]:
        try:
            if os.getpid() == self._process and _has_raised():
                self._tell(_name_threads() or _AT_EXIT)
                atexit.register(self._tell, _AT_EXIT)  # the last one that is registered runs first
        except Exception:
            pass  # taas-run knows less, and the program ends as it would
        return super().__reversed__()

    def _tell(self, waits_for: str) -> None:
        try:
            with open(self._path, "w", encoding="utf-8", errors="replace") as file:
                file.write(waits_for)
        except Exception:
            pass


def _has_raised() -> bool:
    """Python leaves there what it has printed of an exception that nobody caught.

    In a session in which commands are typed it does so for each of them, which are no files.
    """
    trace = getattr(sys, "last_traceback", None)
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    is_program = code.co_name == "<module>" and (not code.co_filename.startswith("<") or code.co_filename == "<string>")
    return is_program or code.co_name == "_run_module_as_main"


def _name_threads() -> str:
    threading = sys.modules["threading"]
    names = [
        thread.name for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()
    ]
    if not names:
        return ""
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    shown = ", ".join([f'"{name[:_LONGEST_NAME]}"' for name in names[:_MOST_NAMES]] + more)
    return f"{'thread' if len(names) == 1 else 'threads'} {shown}"
