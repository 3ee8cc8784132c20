"""Folders and files for temporary use that are removed after their maker, however that ended.

Their names cannot be foreseen, so that nobody else can take them. Their maker holds a lock (flock) for life, which the
system takes back when it ends, and which is seen from other containers and, where the storage is shared, from other
machines; a process number means something else there. What nobody holds a lock on is left over: the next cell removes
it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile

from ...runtime import own_files

_PREFIX = "taas-cell."
_LOCK = "lock"
"""The file in a folder that is locked: a folder itself cannot be, on storage of other machines."""


class Kept:
    """A path that belongs to this process until remove(). Only this user can look into it.

    It is held open: ranks know its path, and what they may have put there instead is not removed."""

    def __init__(self, path: str, lock: int, folder: int | None = None) -> None:
        self.path, self._lock, self._folder = path, lock, folder

    @classmethod
    def folder(cls, base: str) -> Kept:
        """A new folder in `base`. Raises OSError."""
        while True:
            path = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
            with contextlib.suppress(FileNotFoundError):
                folder = own_files.open_folder(path)
                if kept := cls._hold(path, _open_lock(folder), folder):
                    return kept
                os.close(folder)

    @classmethod
    def file(cls, base: str) -> Kept:
        """A new, empty file in `base`. Raises OSError."""
        while True:
            lock, path = tempfile.mkstemp(prefix=_PREFIX, dir=base)
            if kept := cls._hold(path, lock):
                return kept

    @classmethod
    def _hold(cls, path: str, lock: int, folder: int | None = None) -> Kept | None:
        """None where somebody's sweep has come between the path and its lock."""
        try:
            _take(lock)
        except BlockingIOError:
            os.close(lock)
            return None
        except OSError:  # storage without locks, where no sweep removes anything
            return cls(path, lock, folder)
        if os.fstat(lock).st_nlink == 0:
            os.close(lock)
            return None
        return cls(path, lock, folder)

    def remove(self) -> None:
        """It is wanted no longer."""
        _remove(self.path, self._lock, self._folder)
        os.close(self._lock)
        if self._folder is not None:
            os.close(self._folder)


def sweep(base: str) -> None:
    """Removes what ended processes of this user have left in `base`. What cannot be looked at or removed stays."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(base)):
            if entry.name.startswith(_PREFIX) and _is_own(entry):
                with contextlib.suppress(OSError):
                    _remove_unless_locked(entry.path, entry.is_dir(follow_symlinks=False))


def _is_own(entry: os.DirEntry[str]) -> bool:
    status = entry.stat(follow_symlinks=False)
    return status.st_uid == os.getuid() and (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode))


def _remove_unless_locked(path: str, is_folder: bool) -> None:
    folder = own_files.open_folder(path) if is_folder else None
    try:
        lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW) if folder is None else _open_lock(folder)
        try:
            _take(lock)
            _remove(path, lock, folder)
        finally:
            os.close(lock)
    finally:
        if folder is not None:
            os.close(folder)


def _open_lock(folder: int) -> int:
    return os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=folder)


def _take(lock: int) -> None:
    """Raises BlockingIOError where another process has it, and OSError on storage without locks."""
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove(path: str, lock: int, folder: int | None) -> None:
    """A file's name, if it is still that of the locked file; or what is in a folder, and then its name."""
    with contextlib.suppress(OSError):
        if folder is not None:
            own_files.clear(folder)
            os.rmdir(path)
        elif os.path.samestat(os.lstat(path), os.fstat(lock)):
            os.unlink(path)
