"""Programs in which all ranks save run as they stand, though only rank 0 may write to the project.

Where the kernel refuses a write of Python's in the project (Landlock), it is made in a folder of this rank's own
instead; what the rank has written there, it finds there. Everything that is not refused stays as it is. Libraries that
open files by themselves, except torch.save, stay refused.
"""

from __future__ import annotations

import builtins
import io
import os
import types
from functools import wraps
from typing import Any, Callable

from .on_import import when_imported
from .private_place import PrivatePlace, copy_contents

_LOOKING = ("stat", "lstat", "access", "readlink", "getxattr", "listxattr")
_CHANGING = ("chmod", "utime", "truncate", "remove", "unlink", "rmdir", "setxattr")
_ASKED_ABOUT = (os.supports_dir_fd, os.supports_fd, os.supports_effective_ids, os.supports_follow_symlinks)
_FOLDERS = ("dir_fd", "src_dir_fd", "dst_dir_fd")
_open = os.open


def install(project: str, output: str) -> None:
    """From now on in this process and in those that it forks. `output` is this rank's own TAAS_OUTPUT_DIR:
    <run's folder>/private/rank-0001/output."""
    own = os.path.dirname(output)
    place = PrivatePlace(project, os.path.dirname(os.path.dirname(own)), os.path.join(own, "project"))
    builtins.open = io.open = _opening(io.open, place)  # type: ignore[assignment]
    _replace("open", _opening_descriptor(os.open, place))
    _replace("mkdir", _making(os.mkdir, place))
    for name in (*_LOOKING, *_CHANGING):
        _replace(name, _using_own(getattr(os, name), place))
    for name in ("rename", "replace", "link"):
        _replace(name, _moving(getattr(os, name), place))
    _replace("symlink", _linking(os.symlink, place))
    _replace("listdir", _listing(os.listdir, place))
    _replace("scandir", _scanning(os.scandir, place))
    when_imported("torch.serialization", lambda torchs: _patch_torch(torchs, place))


def _replace(name: str, function: Any) -> None:
    for functions in _ASKED_ABOUT:
        if getattr(os, name) in functions:
            functions.add(function)
    setattr(os, name, function)


def _using_own(original: Any, place: PrivatePlace) -> Any:
    """For what needs something that is there: the rank's own version, where it has one."""

    @wraps(original)
    def use(path: Any = ".", *arguments: Any, **named: Any) -> Any:
        own = None if _is_relative_to_folder(named) else place.own_version(path)
        return original(path if own is None else own, *arguments, **named)

    return use


def _making(original: Any, place: PrivatePlace) -> Any:
    """For what makes a new entry."""

    @wraps(original)
    def make(path: Any, *arguments: Any, **named: Any) -> Any:
        return _instead(lambda where: original(where, *arguments, **named), path, place, _is_relative_to_folder(named))

    return make


def _opening(original: Any, place: PrivatePlace) -> Any:
    @wraps(original)
    def open(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        keeps = not set(mode) & {"w", "x"}
        return _instead(lambda where: original(where, mode, *arguments, **named), file, place, keeps=keeps)

    return open


def _opening_descriptor(original: Any, place: PrivatePlace) -> Any:
    @wraps(original)
    def open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        keeps = not flags & (os.O_TRUNC | os.O_EXCL)
        opened: int = _instead(
            lambda where: original(where, flags, mode, dir_fd=dir_fd), path, place, dir_fd is not None, keeps
        )
        return opened

    return open


def _moving(original: Any, place: PrivatePlace) -> Any:
    @wraps(original)
    def move(src: Any, dst: Any, **named: Any) -> Any:
        if _is_relative_to_folder(named):
            return original(src, dst, **named)
        own = place.own_version(src)
        source = src if own is None else own
        if own is not None and (target := place.prepare(dst)) is not None:
            return original(source, target, **named)
        return _instead(lambda where: original(source, where, **named), dst, place)

    return move


def _linking(original: Any, place: PrivatePlace) -> Any:
    @wraps(original)
    def link(src: Any, dst: Any, *arguments: Any, **named: Any) -> Any:
        return _instead(
            lambda where: original(src, where, *arguments, **named), dst, place, _is_relative_to_folder(named)
        )

    return link


def _listing(original: Any, place: PrivatePlace) -> Any:
    @wraps(original)
    def listdir(path: Any = ".") -> Any:
        first, *others = _folders(path, place)
        names = original(first)
        return names + [name for other in others for name in original(other) if name not in names]

    return listdir


def _scanning(original: Any, place: PrivatePlace) -> Any:
    @wraps(original)
    def scandir(path: Any = ".") -> Any:
        first, *others = _folders(path, place)
        if not others:
            return original(first)
        with original(first) as entries, original(others[0]) as more:
            found = {entry.name: entry for entry in entries}
            found |= {entry.name: entry for entry in more if entry.name not in found or not entry.is_dir()}
        return _Entries(list(found.values()))

    return scandir


def _folders(path: Any, place: PrivatePlace) -> list[Any]:
    """Where a folder's entries are: in the rank's own one, or in the project's and perhaps the private one as well."""
    own = place.own_version(path)
    beside = place.listed(path) if own is None else None
    typed = os.fsencode if isinstance(path, bytes) else os.fsdecode  # as the names are to be
    private = [typed(folder) for folder in (own, beside) if folder is not None]
    return private if own is not None else [path, *private]


class _Entries:
    """As what os.scandir() returns."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is open."""


def _instead(
    call: Callable[[Any], Any], path: Any, place: PrivatePlace, is_elsewhere: bool = False, keeps: bool = False
) -> Any:
    """Calls with the path, or with the rank's own place for it.

    That is where there is one already, or when the path is refused. `keeps`: what is there is changed, and not
    replaced.
    """
    own = None if is_elsewhere else place.own_version(path)
    if own is not None:
        return call(own)
    try:
        return call(path)
    except PermissionError:
        own = None if is_elsewhere else place.prepare(path)
        if own is None:
            raise
        if keeps:
            copy_contents(path, own)
    return call(own)


def _patch_torch(serialization: types.ModuleType, place: PrivatePlace) -> None:
    """Its writer opens files in C++, and so has to be told where before it is refused."""
    writer = getattr(serialization, "_open_zipfile_writer_file", None)
    if writer is None:
        return
    begin = writer.__init__

    @wraps(begin)
    def __init__(self: Any, name: Any) -> None:
        begin(self, _instead(_writable, name, place))

    writer.__init__ = __init__


def _writable(path: Any) -> Any:
    """The path. Raises OSError where it cannot be written."""
    os.close(_open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
    return path


def _is_relative_to_folder(named: dict[str, Any]) -> bool:
    return any(named.get(name) is not None for name in _FOLDERS)
