"""The entry that Python puts in front of sys.path for a program.

Modules there come before all others, also for what torch imports.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

from .settings import Settings


@contextlib.contextmanager
def in_path(settings: Settings) -> Iterator[None]:
    """Puts the entry there, and takes it away again since Python will put it there once more."""
    entry = find(sys.orig_argv[settings.options :])
    if entry is None or getattr(sys.flags, "safe_path", False):
        yield
        return
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


def find(program: list[str]) -> str | None:
    """By the program's words: -m NAME, -c TEXT, or a script, a folder or an archive."""
    if not program:
        return None
    if program[0].startswith("-"):  # -m, -um, …
        return os.getcwd() if program[0].endswith("m") else ""
    is_script = os.path.isfile(program[0]) and not _is_archive(program[0])
    return os.path.dirname(os.path.realpath(program[0])) if is_script else os.path.abspath(program[0])


def _is_archive(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PK\3\4"
