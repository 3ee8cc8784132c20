"""Files whose paths other processes of this user know, such as ranks.

What they may have put in their place is not touched.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import BinaryIO

_NO_LINK = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_MOST_DEPTH = 200
"""Of folders within each other, which anybody can make thousands of: the stack and descriptors have an end."""


def open_folder(path: str, dir_fd: int | None = None) -> int:
    """Its descriptor. Raises OSError where it is no folder: a link to one is none."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=dir_fd)


def open_file(path: str) -> BinaryIO:
    """A regular file, for reading. Raises OSError where it is anything else: a pipe would wait for its writer."""
    descriptor = os.open(path, os.O_RDONLY | _NO_LINK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return open(descriptor, "rb")


def new_file(path: str) -> BinaryIO:
    """A file that is new, in place of what else has the name. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o600), "wb")


def clear(folder: int, depth: int = 0) -> None:
    """Removes what is in an open folder, as far as it can. Other file systems that are mounted there stay."""
    device = os.fstat(folder).st_dev
    with contextlib.suppress(OSError):
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_folder in found:
            with contextlib.suppress(OSError):
                if not is_folder:
                    os.unlink(name, dir_fd=folder)
                elif depth < _MOST_DEPTH:
                    _clear_inner(name, folder, device, depth + 1)
                    os.rmdir(name, dir_fd=folder)


def _clear_inner(name: str, above: int, device: int, depth: int) -> None:
    inner = open_folder(name, above)
    try:
        if os.fstat(inner).st_dev == device:
            clear(inner, depth)
    finally:
        os.close(inner)
