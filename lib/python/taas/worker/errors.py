"""What data workers say of their batches."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from ..order.task import Task


class UndeliverableBatch(RuntimeError):
    """No data worker can make a batch."""


def describe(task: Task) -> str:
    """Which batch it is, for people."""
    place = f"batch {task.number} of epoch {task.seeds.epoch}"
    return f"{place}, indices {short(task.indices)}" if task.turn < 0 else place


def short(indices: Any) -> str:
    """In one line."""
    text = " ".join(repr(indices).split())
    return text if len(text) <= 80 else text[:76] + " …]"


def say(line: str) -> None:
    """On stderr, whatever the program's code has made of sys.stderr: the launcher shows a data worker's last line."""
    with contextlib.suppress(OSError):
        os.write(2, f"taas: {line}\n".encode(errors="backslashreplace"))
