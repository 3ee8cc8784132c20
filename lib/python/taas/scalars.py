"""Scalars that a training program logs: lines of JSON in the run's output."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from typing import SupportsFloat

_BETWEEN_CLOSES = 10.0  # seconds; what is closed is published (docs/output.md), as a copy of the whole file


class _ScalarFile:
    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._descriptor = -1
        self._opened = 0.0

    def write(self, line: bytes) -> None:
        with self._lock:
            now = time.monotonic()
            if self._descriptor >= 0 and now - self._opened >= _BETWEEN_CLOSES:
                os.close(self._descriptor)
                self._descriptor = -1
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
                self._opened = now
            os.write(self._descriptor, line)


def _value_of(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


_file: _ScalarFile | None = None


def log_scalar(name: str, value: SupportsFloat, step: int) -> None:
    """Adds a line to the run's scalars, from rank 0; other ranks may call it too, and do nothing.

    The file is $TAAS_OUTPUT_DIR/scalars-N.jsonl, N being the number of restarts so far, or one in the current folder without taas-run. A
    line is {"wall_time": 1790000000.25, "step": 12, "name": "loss", "value": 0.25}: seconds since 1970, and "NaN", "Infinity" or
    "-Infinity" for values that JSON has no number for. It is in the file when this returns, and the file is published every ten seconds.
    `value` is a number or a tensor of one element: one on a GPU is waited for. May be called from any thread. Raises OSError, which names
    the file, when it cannot be written.
    """
    global _file
    if os.environ.get("RANK") not in (None, "", "0"):
        return
    if _file is None:
        folder = os.environ.get("TAAS_OUTPUT_DIR") or "."
        _file = _ScalarFile(os.path.join(folder, f"scalars-{os.environ.get('TORCHELASTIC_RESTART_COUNT') or 0}.jsonl"))
    line = {"wall_time": round(time.time(), 3), "step": int(step), "name": str(name), "value": _value_of(float(value))}
    _file.write(json.dumps(line).encode() + b"\n")
