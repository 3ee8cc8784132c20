"""What the launcher tells ranks and data workers: a file that it replaces when something changes."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

_LOOK_EVERY_SECONDS = 0.2


@dataclass(frozen=True)
class Plan:
    """The file's content. `key` has 64 hexadecimal digits.

    `buffer_bytes` is for each rank; `units` counts samples of all ranks together, 0 for all there are.
    `loader` is what --loader names, with commas between several.

    `workers` are dictionaries with name, address, port and unix; one that has left has neither address nor unix.
    """

    run: str
    key: str
    workers: list[dict[str, Any]] = field(default_factory=list)
    encryption: str = "tls"
    compression: str = "none"
    buffer_bytes: int = 1 << 30
    units: int = 0
    on_error: str = "raise"
    loader: str = ""
    world_size: int = 1

    def loaders(self) -> list[str]:
        """What `loader` names, each as "module:attribute"."""
        return [name for name in self.loader.split(",") if name]


def read(path: str) -> Plan:
    """The plan of `path`. Raises RuntimeError with one line when there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            values = json.load(file)
        return Plan(**{name: value for name, value in values.items() if name in Plan.__dataclass_fields__})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RuntimeError(
            f"taas: the data plan {path} cannot be read ({error}); TAAS_DATA_PLAN is set by taas-run, "
            "unset it for a program that runs without"
        ) from error


class Watched:
    """A plan that is read again when its file has been replaced."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._looked = time.monotonic()
        self._mark = self._look()
        self.plan = read(path)

    def is_due(self) -> bool:
        """True at most five times a second."""
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY_SECONDS:
            return False
        self._looked = now
        return True

    def has_changed(self) -> bool:
        """True when there is another plan than at the last call."""
        mark = self._look()
        if mark is None or mark == self._mark:
            return False
        self._mark, self.plan = mark, read(self._path)
        return True

    def _look(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:  # the run ends
            return None
        return found.st_ino, found.st_mtime_ns
