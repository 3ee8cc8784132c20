"""The state of the training program that its data workers have: it travels with every task.

A run's workers serve several ranks, and these may change what they have set from loop to loop. What a loop begins with
holds for all its batches; with persistent_workers, what the first one began with.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import struct
import sys
import time
import types
from typing import Any, Callable, NamedTuple

import torch

from . import place

_VERSION = 3
_HEAD = struct.Struct("<HxxIIQ")
_PROBE = "taas"
_OF_PIL = (("PIL.ImageFile", "LOAD_TRUNCATED_IMAGES", False), ("PIL.Image", "MAX_IMAGE_PIXELS", 89478485))
"""With the values that they have when PIL is loaded."""

_OF_THE_PROCESS = frozenset(
    "PYTHONFAULTHANDLER PYTHONHASHSEED PYTHONPATH OMP_NUM_THREADS _ SHLVL PWD OLDPWD WANDB_RUN_GROUP "
    "ACCELERATE_USE_CPU PL_TRAINER_DEVICES PL_TRAINER_NUM_NODES".split()
)
"""Set for each process when it starts, and of no use to it later."""

_OF_THE_LAUNCHER = ("TAAS_", "TORCHELASTIC_", "TORCH_NCCL_", "TORCH_FR_", "NCCL_", "GLOO_")
"""How the variables begin that tell a rank how to communicate, and where its files are."""


@functools.lru_cache(maxsize=4096)
def _is_own(name: str) -> bool:
    """True for a variable of the process that has it, whichever rank it works for."""
    return name.startswith(_OF_THE_LAUNCHER) or name in _OF_THE_PROCESS or name in place.VARIABLES


@functools.lru_cache(maxsize=1)
def _at_the_start() -> dict[str, str]:
    """The variables that this process was started with.

    Of a preloaded rank it is what that was forked from had, without the launcher's.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = (entry.partition("=") for entry in os.fsdecode(file.read()).split("\0") if entry)
            return {name: value for name, _, value in pairs}
    except OSError:
        return dict(os.environ)


def captured() -> bytes:
    """In a rank: the state as it is now."""
    now, start = dict(os.environ), _at_the_start()
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    state = {
        "changed": {name: value for name, value in now.items() if start.get(name) != value and not _is_own(name)},
        "removed": sorted(name for name in start if name not in now and not _is_own(name)),
        "place": place.variables(now),
        "group": place.group(),
        "folder": _folder(),
        "path": [os.path.abspath(folder) for folder in sys.path if isinstance(folder, str)],
        "argv": sys.argv,
        "dtype": _dtype(),
        "pil": _of_pil(),
        "main": main and os.path.abspath(main),
        "hash": hash(_PROBE),
    }
    return json.dumps(state, sort_keys=True, default=str).encode()


def _folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:  # somebody has removed it
        return None


def _dtype() -> str:
    return str(torch.get_default_dtype()).removeprefix("torch.")


def _of_pil() -> list[Any]:
    return [getattr(sys.modules.get(module), name, default) for module, name, default in _OF_PIL]


@functools.lru_cache(maxsize=64)
def _parsed(state: bytes) -> dict[str, Any]:
    return json.loads(state)


_NAMES = {
    "changed": "an environment variable",
    "removed": "an environment variable",
    "folder": "the working directory",
    "dtype": "torch.set_default_dtype",
    "pil": "PIL.Image.MAX_IMAGE_PIXELS or PIL.ImageFile.LOAD_TRUNCATED_IMAGES",
}


def differences(state: bytes, other: bytes) -> list[str]:
    """The names of what a dataset's samples may depend on and is set otherwise in `other`."""
    if not state:
        return []
    one, two = _parsed(state), _parsed(other)
    return [name for key, name in _NAMES.items() if one[key] != two[key]]


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
        """The frame, and the task. Raises ValueError for bytes of another release."""
        if not (self._bytes and payload.startswith(self._bytes)):
            version, count, size, owner = _HEAD.unpack_from(payload)
            if version != _VERSION:
                raise ValueError("a task of another release of taas came: use the same one on all machines")
            others = struct.unpack_from(f"<{count}Q", payload, _HEAD.size)
            begin = _HEAD.size + 8 * count
            self._bytes, self._frame = payload[: begin + size], Frame(owner, others, payload[begin : begin + size])
        return self._frame, payload[len(self._bytes) :]


class Process(NamedTuple):
    """What code may set in its process: of the state what it can change, and some of torch's."""

    variables: dict[bytes, bytes]
    folder: str | None
    path: list[str]
    argv: list[str]
    dtype: str
    pil: list[Any]
    threads: int
    has_gradients: bool

    @classmethod
    def now(cls) -> Process:
        """This process."""
        variables = dict(getattr(os.environ, "_data"))  # a hundredth of the time of dict(os.environb)
        torchs = torch.get_num_threads(), torch.is_grad_enabled()
        return cls(variables, _folder(), list(sys.path), list(sys.argv), _dtype(), _of_pil(), *torchs)

    def follow(self, before: Process) -> dict[str, str]:
        """In this process what is otherwise in the two becomes as it is here. Returns what cannot be, and why."""
        _set_variables(self.variables, before.variables)
        if self.path != before.path:
            sys.path[:] = self.path + [each for each in sys.path if each not in self.path and each not in before.path]
        if self.argv != before.argv:
            sys.argv[:] = self.argv
        if self.dtype != before.dtype:
            torch.set_default_dtype(getattr(torch, self.dtype))
        if self.threads != before.threads:
            torch.set_num_threads(self.threads)
        if self.has_gradients != before.has_gradients:
            torch.set_grad_enabled(self.has_gradients)
        failed = {}
        try:
            if self.folder and self.folder != before.folder:
                os.chdir(self.folder)
        except OSError as error:
            failed["the working directory"] = str(error)
        for (module, name, _), value, was in zip(_OF_PIL, self.pil, before.pil):
            try:
                if value != was:
                    setattr(importlib.import_module(module), name, value)
            except ImportError as error:
                failed[f"{module}.{name}"] = str(error)
        return failed


def _set_variables(wanted: dict[bytes, bytes], before: dict[bytes, bytes]) -> None:
    for name in before.keys() - wanted.keys():
        os.environb.pop(name, None)
    for name, value in wanted.items():
        if before.get(name) != value:
            os.environb[name] = value
    if wanted.get(b"TZ") != before.get(b"TZ"):
        time.tzset()


class State:
    """In a data worker: what of it is in force. `differs` is told what cannot be as in the rank, and why.

    What code has added to the variables and to sys.path stays: modules do so when they are imported, which is once.
    """

    def __init__(self, differs: Callable[[str, str], None]) -> None:
        self._differs = differs
        self._in_force = b""
        variables = {name: value for name, value in os.environ.items() if name in place.VARIABLES or not _is_own(name)}
        self._begun = Process.now()._replace(variables=_encoded(variables))
        self._own_path = [folder for folder in sys.path if folder not in ("", os.getcwd())]

    def enter(self, state: bytes) -> None:
        """From now on this process is as the rank was when it captured `state`."""
        if not state or state == self._in_force:
            return
        self._in_force = b""
        wanted, now, before = _parsed(state), Process.now(), self._begun
        self._begun = self._beginning(wanted, now)
        of_states = now.variables.keys() & (before.variables.keys() | self._begun.variables.keys())
        variables = {name: now.variables[name] for name in of_states}
        for what, why in self._begun.follow(now._replace(variables=variables, path=before.path)).items():
            self._differs(what, why)
        _take_main(wanted["main"])
        place.pretend(wanted["group"] and tuple(wanted["group"]))
        if wanted["hash"] != hash(_PROBE):
            self._differs("the order of sets of strings", "set PYTHONHASHSEED to the same number everywhere")
        self._in_force = state

    def _beginning(self, wanted: dict[str, Any], now: Process) -> Process:
        """The machine's variables, with what the program has changed; the rank's folders before this process' own."""
        variables = {name: value for name, value in _at_the_start().items() if not _is_own(name)}
        variables |= {**wanted["changed"], **wanted["place"]}
        encoded = _encoded({name: value for name, value in variables.items() if name not in wanted["removed"]})
        path = wanted["path"] + [folder for folder in self._own_path if folder not in wanted["path"]]
        return Process(
            encoded, wanted["folder"], path, wanted["argv"], wanted["dtype"], wanted["pil"], 1, now.has_gradients
        )


def _encoded(variables: dict[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}


def _take_main(file: str | None) -> None:
    """Data workers' own code runs on in its module, though the program's takes its name."""
    if getattr(sys.modules["__main__"], "__file__", None) == file:
        return
    main = types.ModuleType("__main__")
    if file:
        main.__file__ = file
    sys.modules["__main__"] = main
