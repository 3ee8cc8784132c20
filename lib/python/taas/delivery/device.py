"""Batches on a GPU: the next ones are copied while the loop is at this one."""

from __future__ import annotations

import collections
import dataclasses
import functools
from typing import Any, Callable, Protocol

import torch

from ..order.task import Task
from .cuda_copies import CudaCopies
from .loop import Stream
from .outcome import Outcome, Ready

BATCHES_AHEAD = 2
"""So many are on the device, or on their way, beside the one that the loop has."""


class Copies(Protocol):
    """Copies batches to a device, on a stream of its own."""

    def start(self, batch: Any) -> Any:
        """Asks for the copy. What it returns is for finish alone; `batch` may be let go."""
        ...

    def finish(self, started: Any) -> Any:
        """The batch on the device, for all that the loop asks of the device from now on."""
        ...


def chosen(device: Any) -> torch.device | None:
    """The device that a program asks for; None for the CPU. Raises ValueError. Does not initialise CUDA."""
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"device={device!r} is not a device: give 'cuda', 'cuda:1' or 'cpu'") from None
    if wanted.type == "cpu":
        return None
    if wanted.type != "cuda":
        raise ValueError(f"device={device!r}: batches can be copied to 'cuda' or 'cuda:1', or stay on the 'cpu'")
    count = torch.cuda.device_count()
    if count == 0:
        raise ValueError(
            f"device={device!r}, but PyTorch sees no GPU on this machine: leave out device, or see what nvidia-smi "
            "and CUDA_VISIBLE_DEVICES say"
        )
    if wanted.index is not None and wanted.index >= count:
        raise ValueError(
            f"device={device!r}, but PyTorch sees {count} GPU{'s' if count > 1 else ''} here, of which the last is "
            f"'cuda:{count - 1}'"
        )
    return wanted


def copied(batch: Any, device: torch.device) -> Any:
    """The batch on the device, where nothing is copied ahead."""
    copies = _copies_to(device)
    return copies.finish(copies.start(batch))


def on_device(stream: Stream, device: torch.device) -> Stream:
    """The same, whose batches come on the device. Nothing is done there before the first batch is here."""
    return DeviceStream(stream, lambda: _copies_to(device))


class DeviceStream:
    """A stream whose outcomes are taken from another one ahead of the loop, as far as they are there."""

    def __init__(self, stream: Stream, copies: Callable[[], Copies]) -> None:
        self._stream = stream
        self._make_copies = copies
        self._made: Copies | None = None
        self._under_way = 0  # tasks of the other stream
        self._ahead: collections.deque[tuple[Outcome, Any]] = collections.deque()

    def submit(self, task: Task) -> None:
        self._stream.submit(task)
        self._under_way += 1

    def next(self, seconds: float) -> Outcome | None:
        """The next task's outcome. The copies of those after it are asked for before the loop gets it."""
        if not self._ahead and not self._take(seconds):
            return None
        outcome, started = self._ahead.popleft()
        while len(self._ahead) < BATCHES_AHEAD and self._under_way and self._take(0.0):
            pass
        if not isinstance(outcome, Ready):
            return outcome
        copies = self._copies()
        started = copies.start(outcome.batch) if started is None else started
        return dataclasses.replace(outcome, batch=copies.finish(started))

    def _copies(self) -> Copies:
        self._made = self._made or self._make_copies()
        return self._made

    def window(self) -> int:
        return self._stream.window()

    def statistics(self) -> dict[str, int]:
        return self._stream.statistics()

    def tend(self) -> None:
        self._stream.tend()

    def pin(self) -> None:
        self._stream.pin()

    def close(self) -> None:
        self._ahead.clear()
        self._stream.close()

    def _take(self, seconds: float) -> bool:
        outcome = self._stream.next(seconds)
        if outcome is None:
            return False
        self._under_way -= 1
        self._ahead.append((outcome, self._started(outcome)))
        return True

    def _started(self, outcome: Outcome) -> Any:
        """None where nothing is copied, and where that fails.

        Then it is tried again when the loop is there, and raises.
        """
        if not isinstance(outcome, Ready):
            return None
        try:
            copies = self._copies()
            self._stream.pin()
            started = copies.start(outcome.batch)
        except Exception:
            return None
        outcome.batch = None if started is not None else outcome.batch  # its memory is free when the copy is done
        return started


def _copies_to(device: torch.device) -> Copies:
    """Initialises CUDA. "cuda" is the GPU that the program uses now."""
    return _copies_of_gpu(torch.cuda.current_device() if device.index is None else device.index)


@functools.lru_cache(maxsize=None)
def _copies_of_gpu(index: int) -> Copies:
    return CudaCopies(index)
