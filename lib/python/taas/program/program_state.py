"""The state of the training program that its data workers are to have: it travels with every task.

A run's workers serve several ranks, and these may change what they have set from loop to loop. What a loop begins with
holds for all its batches, as in workers of the plain loader that are started for it.
"""

from __future__ import annotations

import functools
import json
import os
import struct
import sys
import threading
import types
from typing import Any, Callable, NamedTuple

import torch
from torch.utils.data import DataLoader

from ..code.recipe import recipe_of
from ..dataset import outside
from . import environment, place, settings

_VERSION = 2  # tasks alone begin with 1
_HEAD = struct.Struct("<BIIQ")
_PROBE = "taas"


def captured(values: dict[str, str] | None = None, objects: dict[str, str] | None = None) -> bytes:
    """In a rank: the state as it is now.

    The loader's code sees the globals `values`, and `objects`, which are pickles.
    """
    variables = dict(os.environ)
    state: dict[str, Any] = {
        "settings": settings.read_all(),
        "environment": environment.of_the_script(variables),
        "place": place.variables(variables),
        "group": place.group(),
        "path": [os.path.abspath(folder) for folder in sys.path],
        "main": _main_file(),
        "globals": values or {},
        "objects": objects or {},
        "hash": hash(_PROBE),
    }
    return json.dumps(state, sort_keys=True).encode()


def _main_file() -> str | None:
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(file) if file else None


@functools.lru_cache(maxsize=64)
def parsed(state: bytes) -> dict[str, Any]:
    """What captured() put into it."""
    return json.loads(state) if state else {}


def with_shared(state: bytes, values: list[str]) -> bytes:
    """The state with what is in memory that processes share: see dataset/shared_copies.py."""
    return json.dumps({**parsed(state), "shared": values}, sort_keys=True).encode() if values else state


def shared(state: bytes) -> list[str]:
    """What with_shared() put into it."""
    return parsed(state).get("shared", [])


_OF_NO_MATTER = frozenset(
    [
        "sys.argv",
        "the umask",
        "logging",
        "the recursion limit",
        "the start method of multiprocessing",
        "the warning filters",
        "torch.set_printoptions",
        "numpy.set_printoptions",
    ]
)


@functools.lru_cache(maxsize=64)
def differences(state: bytes, other: bytes) -> tuple[str, ...]:
    """The names of what a dataset's samples may depend on and is set otherwise in `other`."""
    one, two = parsed(state), parsed(other)
    mine, theirs = one.get("settings", {}), two.get("settings", {})
    names = [name for name in mine if name not in _OF_NO_MATTER and mine[name] != theirs.get(name)]
    variables = one.get("environment") != two.get("environment") if state else False
    return (*names, *(["environment variables"] if variables else []))


class Frame(NamedTuple):
    """What goes before a task: the state that it is to be done in, and whose copies of logical workers make it.

    `owner` is 64 bits that name a loop, or with persistent_workers the loader's registration. `others` are those of
    this rank that there were when the loop began: the copies of all that are not among them may go.
    """

    owner: int = 0
    others: tuple[int, ...] = ()
    state: bytes = b""

    def to_bytes(self) -> bytes:
        """The payload of a task up to the task itself."""
        others = struct.pack(f"<{len(self.others)}Q", *self.others)
        return _HEAD.pack(_VERSION, len(self.others), len(self.state), self.owner) + others + self.state


class Payloads:
    """Takes payloads apart. One task after the other has the same frame, which then is the same object."""

    def __init__(self) -> None:
        self._bytes, self._frame = b"", Frame()

    def split(self, payload: bytes) -> tuple[Frame, bytes]:
        """The frame, which may be missing, and the task."""
        if not (self._bytes and payload.startswith(self._bytes)):
            self._bytes, self._frame = _frame_of(payload)
        return self._frame, payload[len(self._bytes) :]


def _frame_of(payload: bytes) -> tuple[bytes, Frame]:
    if payload[:1] != bytes([_VERSION]):
        return b"", Frame()
    _, count, size, owner = _HEAD.unpack_from(payload)
    others = struct.unpack_from(f"<{count}Q", payload, _HEAD.size)
    begin = _HEAD.size + 8 * count
    return payload[: begin + size], Frame(owner, others, payload[begin : begin + size])


class Capture(NamedTuple):
    """The state that a loop begins with, and the places of objects in modules that cannot be sent.

    The loader's code sees these, and they have changed since the last loop.
    """

    state: bytes
    unsendable: list[str]


class Captures:
    """In a rank: the states that its registered loaders' loops begin with.

    With persistent_workers, that of the first one.
    """

    def __init__(self) -> None:
        self._last: dict[int, bytes] = {}
        self._followed: dict[int, outside.Followed] = {}

    def capture(self, token: int, loader: DataLoader, has_begun: bool) -> Capture:
        """For a loop that begins now over `loader`, whose registration has this token.

        `has_begun`: it is not the first one.
        """
        if loader.persistent_workers and has_begun and token in self._last:
            return Capture(self._last[token], [])
        followed = self._followed.setdefault(token, outside.Followed())
        seen, changed = followed.look(recipe_of(loader))
        self._last[token] = captured(seen.sendable(), followed.pickles)
        return Capture(self._last[token], [place for place in changed if place not in followed.pickles])

    def forget(self, token: int) -> None:
        """The loader is not registered any more."""
        self._last.pop(token, None)
        self._followed.pop(token, None)


class ProgramState:
    """In a data worker: what of it is in force.

    `differs` is called with the name of what cannot be as in the rank, and why.
    """

    def __init__(self, differs: Callable[[str, str], None]) -> None:
        self._differs = differs
        self._in_force: tuple[int, bytes] | None = None  # some of it belongs to the thread
        self._objects: dict[str, Any] = {}
        self._own_path = [folder for folder in sys.path if folder not in ("", os.getcwd())]
        self._own_main = sys.modules["__main__"]  # whose code runs, though the program's takes its name

    def enter(self, state: bytes) -> None:
        """From now on this process is as the rank was when it captured `state`."""
        mark = threading.get_ident(), state
        if not state or mark == self._in_force:
            return
        wanted = parsed(state)
        torch.set_num_threads(1)  # as in torch's own workers, whatever the code of a loader before has set
        environment.take(wanted["environment"], wanted["place"])
        self._take_path(wanted["path"])
        self._take_main(wanted["main"])
        for name, error in settings.write_all(wanted["settings"]).items():
            self._differs(name, str(error))
        if wanted["hash"] != hash(_PROBE):
            self._differs("the order of sets of strings", "set PYTHONHASHSEED to the same number everywhere")
        place.pretend(wanted["group"] and tuple(wanted["group"]))
        self._objects = outside.objects_of(wanted["objects"])
        outside.take(wanted["globals"], self._objects)
        self._in_force = mark

    def _take_path(self, wanted: list[str]) -> None:
        """The rank's order comes first."""
        sys.path[:] = wanted + [folder for folder in self._own_path if folder not in wanted]

    def _take_main(self, file: str | None) -> None:
        if getattr(sys.modules["__main__"], "__file__", None) == file:
            return
        main = types.ModuleType("__main__")
        if file:
            main.__file__ = file
        sys.modules["__main__"] = main

    def use(self) -> None:
        """Code that was loaded, or other code than before, runs next: its modules have the rank's globals."""
        if self._in_force:
            outside.take(parsed(self._in_force[1])["globals"], self._objects)
