"""Where a rank's own version of a path in the project is."""

from __future__ import annotations

import os
import shutil
import stat
from typing import Any

_lstat, _stat = os.lstat, os.stat  # private_writes replaces them


class PrivatePlace:
    """A folder that stands for the project where only rank 0 may write there.

    What this rank was refused to write is in it, under the same names. Paths count as they are written: links are not
    followed.
    """

    def __init__(self, project: str, run_folder: str, folder: str) -> None:
        self._project, self._run_folder, self._folder = map(os.path.abspath, (project, run_folder, folder))
        self._used = False

    def own_version(self, path: Any) -> str | None:
        """The private version of a file, or of a folder that the project does not have.

        Or the place of a new entry of such a folder. None: there is only the project's version.
        """
        if not self._used or (place := self.of(path)) is None:
            return None
        if (mode := _mode(_lstat, place)) is not None:
            return place if not stat.S_ISDIR(mode) or _mode(_lstat, path) is None else None
        return place if _is_folder(os.path.dirname(place)) and not _is_folder(_parent(path)) else None

    def prepare(self, path: Any) -> str | None:
        """The place for what was refused, with the folders above it. None: it stays refused."""
        place = self.of(path)
        if place is None or not (_is_folder(_parent(path)) or _is_folder(os.path.dirname(place))):
            return None
        os.makedirs(os.path.dirname(place), exist_ok=True)
        self._used = True
        return place

    def of(self, path: Any) -> str | None:
        """None for what is outside of the project, or belongs to the run itself, as the private folder does."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None
        full = os.path.abspath(os.fsdecode(path))
        if full == self._project or not _is_below(full, self._project) or _is_below(full, self._run_folder):
            return None
        return os.path.join(self._folder, os.path.relpath(full, self._project))

    def listed(self, path: Any) -> str | None:
        """The private folder with further entries of a folder of the project."""
        if not self._used:
            return None
        full = os.path.abspath(os.fsdecode(path)) if isinstance(path, (str, bytes, os.PathLike)) else ""
        place = self._folder if full == self._project else self.of(path)
        return place if place is not None and _is_folder(place) else None


def copy_contents(path: Any, place: str) -> None:
    """For a file that is to be changed, not written anew."""
    if _mode(_lstat, place) is None and stat.S_ISREG(_mode(_stat, path) or 0):
        shutil.copyfile(path, place)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _parent(path: Any) -> str:
    return os.path.dirname(os.path.abspath(os.fsdecode(path)))


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(_mode(_stat, path) or 0)


def _mode(look: Any, path: Any) -> int | None:
    try:
        return int(look(path).st_mode)
    except OSError:
        return None
