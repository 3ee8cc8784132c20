"""Steps that a training program counts for the launcher, which shows how many a second there are and since when none."""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import struct
import time

# docs/environment.md has the layout: steps so far, CLOCK_MONOTONIC of the last in nanoseconds, steps a second.
_LAYOUT = "=Qqd"
_SIZE = struct.calcsize(_LAYOUT)
_WINDOW = 10.0  # seconds over which the rate is smoothed


class _Counter:
    """One rank's file, mapped into memory: a step costs a microsecond and no system call."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, _SIZE)
            fcntl.flock(descriptor, fcntl.LOCK_SH)  # held by the mapping: while it lives, the file is no leftover
            self._memory = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)
        self._process = os.getpid()
        self._count, self._last, self._rate = struct.unpack(_LAYOUT, self._memory[:])

    def add(self, count: int) -> None:
        if os.getpid() != self._process:
            return  # a fork, as a DataLoader's worker is: the program's steps are those of the process that began
        now = time.monotonic_ns()
        if self._last:
            since = max(now - self._last, 1) / 1e9
            weight = 1 - math.exp(-since / _WINDOW) if self._rate else 1.0
            self._rate += weight * (count / since - self._rate)
        self._count += count
        self._last = now
        struct.pack_into(_LAYOUT, self._memory, 0, self._count, self._last, self._rate)


_counter: _Counter | None = None
_path = os.environ.get("TAAS_STEPS", "")


def step(count: int = 1) -> None:
    """Tells the launcher that `count` steps of training are done. Call it once in each round of the loop, in every rank.

    `taas-run top` and the live line then have the rate, and `taas-run look` since when there was no step. Nothing depends
    on it: without taas-run, or where the file cannot be made, it does nothing. `count` is a whole number above 0.
    """
    global _counter, _path
    if not _path:
        return
    if _counter is None:
        try:
            _counter = _Counter(_path)
        except (OSError, ValueError):
            _path = ""
            return
    _counter.add(count)
