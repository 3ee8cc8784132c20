"""Several tasks that are asked for at once: where a batch costs less to make than to ask for, and to answer."""

from __future__ import annotations

import struct
from typing import Sequence

_VERSION = 3  # a task alone begins with 1, one with a state of the program with 2
_HEAD = struct.Struct("<BxxxI")


def payload_of(tasks: Sequence[bytes]) -> bytes:
    """One payload of these; of one task it is that of the task."""
    if len(tasks) == 1:
        return tasks[0]
    sizes = struct.pack(f"<{len(tasks)}I", *map(len, tasks))
    return b"".join((_HEAD.pack(_VERSION, len(tasks)), sizes, *tasks))


def tasks_in(payload: bytes) -> list[bytes]:
    """What payload_of() was given."""
    if payload[0] != _VERSION:
        return [payload]
    _, count = _HEAD.unpack_from(payload)
    sizes = struct.unpack_from(f"<{count}I", payload, _HEAD.size)
    tasks, at = [], _HEAD.size + 4 * count
    for size in sizes:
        tasks.append(payload[at : at + size])
        at += size
    return tasks
