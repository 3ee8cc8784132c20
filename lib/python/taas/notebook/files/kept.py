"""Folders and files for temporary use that are removed after their maker, however that ended.

Their names cannot be foreseen, so that nobody else can take them. Their maker holds a lock (flock) for life, which the
system takes back when it ends, and which is seen from other containers and, where the storage is shared, from other
machines; a process number means something else there. What nobody holds a lock on is left over: the next cell removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile

_PREFIX = "taas-cell."
_LOCK = "lock"
"""The file in a folder that is locked: a folder itself cannot be, on storage of other machines."""


class Kept:
    """A path that belongs to this process until remove(). Only this user can look into it."""

    def __init__(self, path: str, lock: int) -> None:
        self.path, self._lock = path, lock

    @classmethod
    def folder(cls, base: str) -> Kept:
        """A new folder in `base`. Raises OSError."""
        while True:
            path = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
            with contextlib.suppress(FileNotFoundError):
                if kept := cls._hold(path, _open_lock(path)):
                    return kept

    @classmethod
    def file(cls, base: str) -> Kept:
        """A new, empty file in `base`. Raises OSError."""
        while True:
            lock, path = tempfile.mkstemp(prefix=_PREFIX, dir=base)
            if kept := cls._hold(path, lock):
                return kept

    @classmethod
    def _hold(cls, path: str, lock: int) -> Kept | None:
        """None where somebody's sweep has come between the path and its lock."""
        try:
            _take(lock)
        except BlockingIOError:
            os.close(lock)
            return None
        except OSError:  # storage without locks, where no sweep removes anything
            return cls(path, lock)
        if os.fstat(lock).st_nlink == 0:
            os.close(lock)
            return None
        return cls(path, lock)

    def remove(self) -> None:
        """It is wanted no longer."""
        _remove(self.path)
        os.close(self._lock)


def sweep(base: str) -> None:
    """Removes what ended processes of this user have left in `base`. What cannot be looked at or removed stays."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(base)):
            if entry.name.startswith(_PREFIX) and _is_own(entry):
                with contextlib.suppress(OSError):
                    _remove_unless_locked(entry.path)


def _is_own(entry: os.DirEntry[str]) -> bool:
    status = entry.stat(follow_symlinks=False)
    return status.st_uid == os.getuid() and (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode))


def _remove_unless_locked(path: str) -> None:
    lock = _open_lock(path)
    try:
        _take(lock)
        _remove(path)
    finally:
        os.close(lock)


def _open_lock(path: str) -> int:
    if os.path.isdir(path):
        return os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    return os.open(path, os.O_RDWR | os.O_NOFOLLOW)


def _take(lock: int) -> None:
    """Raises BlockingIOError where another process has it, and OSError on storage without locks."""
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)
