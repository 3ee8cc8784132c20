"""Unix sockets in folders of any depth: the system takes paths of at most 107 letters."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator

_LONGEST = 107


@contextlib.contextmanager
def short(path: str) -> Iterator[str]:
    """A path to the same place that bind() and connect() take, as long as the context lasts. Raises OSError where the
    folder cannot be opened."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)
