"""The program's environment variables, as data workers are to have them."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

from . import place

_OF_THE_PROCESS = frozenset(
    [
        "PYTHONHASHSEED",
        "PYTHONPATH",
        "OMP_NUM_THREADS",
        "_",
        "SHLVL",
        "PWD",
        "OLDPWD",
        "WANDB_RUN_GROUP",
        "ACCELERATE_USE_CPU",
        "PL_TRAINER_DEVICES",
        "PL_TRAINER_NUM_NODES",
    ]
)
"""Set for each process when it starts, and of no use to it later."""

_OF_THE_LAUNCHER = ("TAAS_", "TORCHELASTIC_", "TORCH_NCCL_", "TORCH_FR_", "NCCL_", "GLOO_")
"""How the variables begin that tell a rank how to communicate, and where its files are."""


@functools.lru_cache(maxsize=4096)
def _is_own(name: str) -> bool:
    """True for what belongs to the process that has it, whichever rank it works for."""
    return name.startswith(_OF_THE_LAUNCHER) or name in _OF_THE_PROCESS or name in place.VARIABLES


@functools.lru_cache(maxsize=1)
def _at_the_start() -> dict[str, str]:
    """What this process was started with.

    Of a preloaded rank it is what that was forked from had, without the launcher's.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = (entry.partition("=") for entry in os.fsdecode(file.read()).split("\0") if entry)
            return {name: value for name, _, value in pairs}
    except OSError:
        return dict(os.environ)


def of_the_script(now: dict[str, str]) -> dict[str, Any]:
    """What the program has changed since it was started. `now` is a copy of os.environ."""
    start = _at_the_start()
    return {
        "changed": {name: value for name, value in now.items() if start.get(name) != value and not _is_own(name)},
        "removed": sorted(name for name in start if name not in now and not _is_own(name)),
    }


def take(wanted: dict[str, Any], rank: dict[str, str]) -> None:
    """In a data worker: the variables are those of the program, and `rank` those of its place."""
    kept = {name: value for name, value in _at_the_start().items() if not _is_own(name)}
    values = {name: value for name, value in {**kept, **wanted["changed"]}.items() if name not in wanted["removed"]}
    _become({**values, **rank})


def _become(values: dict[str, str]) -> None:
    zone = os.environ.get("TZ")
    for name in list(os.environ):
        if name not in values and (name in place.VARIABLES or not _is_own(name)):
            del os.environ[name]
    for name, value in values.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    if os.environ.get("TZ") != zone:
        time.tzset()
