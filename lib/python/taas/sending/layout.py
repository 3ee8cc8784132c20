"""Where buffers lie in a payload or a file: one behind the other, each at a multiple of 64 bytes."""

from __future__ import annotations

from typing import Any, Iterable

ALIGNMENT = 64


def aligned(size: int) -> int:
    """The next multiple of 64."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def spans_of(buffers: Iterable[Any], end: int = 0) -> list[tuple[int, int]]:
    """Where each buffer begins and ends, behind what ends at `end`."""
    spans = []
    for buffer in buffers:
        start = aligned(end)
        end = start + memoryview(buffer).nbytes
        spans.append((start, end))
    return spans
