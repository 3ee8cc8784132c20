"""Copies of batches to a GPU."""

from __future__ import annotations

import collections
import functools
from dataclasses import dataclass, field
from typing import Any

import torch

from ..runtime import events
from ..sending.tensors import is_elements
from .nested import has_to, mapped
from .pinning import Pinned

_COMPARED_AT_FIRST = 16
_THEN_ONE_OF = 1000


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
    copies = copies_to(device)
    return copies.finish(Started(batch, None))


def copies_to(device: torch.device) -> CudaCopies:
    """Initialises CUDA. "cuda" is the GPU that the program uses now."""
    return _of_gpu(torch.cuda.current_device() if device.index is None else device.index)


@functools.lru_cache(maxsize=None)
def _of_gpu(index: int) -> CudaCopies:
    return CudaCopies(index)


@dataclass
class Started:
    """A batch on its way to a GPU: into pinned memory, and from there to the device."""

    source: Any
    pinned: Pinned | None
    there: Any = None
    tensors: list[torch.Tensor] = field(default_factory=list)
    """On the device."""
    has_others: bool = False
    event: Any = None
    """None until the device was asked for the copy."""


class CudaCopies:
    """Copies on a stream of their own, one of each GPU for all loaders.

    The first ones, and then one of a thousand, are compared on the device with what was to be copied. Where they
    differ, a line says so, and from then on batches are copied when the loop gets there, while it waits.
    """

    def __init__(self, index: int) -> None:
        self._device = torch.device("cuda", index)
        self._stream = torch.cuda.Stream(self._device)
        self._read: collections.deque[tuple[Any, Any]] = collections.deque()
        """Events, and the batches that are read until they have passed."""
        self._count = 0
        self._are_right = True

    def start(self, batch: Any) -> Started:
        """Begins the copy. What it returns is for the other functions alone; `batch` may be let go."""
        started = Started(batch, Pinned(batch) if self._are_right else None)
        self.go_on(started)
        return started

    def go_on(self, started: Started | None) -> None:
        """Called while the loop is at a batch before it: asks the device, once the batch is in pinned memory."""
        if started and started.event is None and started.pinned is not None and started.pinned.is_done:
            self._ask(started, started.pinned.result())

    def _ask(self, started: Started, batch: Any) -> None:
        while self._read and self._read[0][0].query():
            self._read.popleft()
        started.tensors.clear()

        def copied(leaf: Any) -> Any:
            if not _is_plain(leaf):
                started.has_others = True
                return leaf
            started.tensors.append(_asked_for(leaf, self._device))
            return started.tensors[-1]

        with torch.cuda.stream(self._stream):
            started.there = mapped(batch, copied)
            started.event = self._stream.record_event()
        self._read.append((started.event, batch))

    def finish(self, started: Started) -> Any:
        """The batch on the device, for all that the loop asks of the device from now on."""
        if not self._are_right:
            return self._at_once(started.source)
        if started.event is None:
            self._ask(started, started.pinned.result() if started.pinned else started.source)
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(started.event)
        for tensor in started.tensors:
            tensor.record_stream(stream)  # the memory is the copying stream's, and this one uses it
        number, self._count = self._count, self._count + 1
        if number < _COMPARED_AT_FIRST or number % _THEN_ONE_OF == 0:
            if wrong := _difference(started.source, started.there):
                return self._without_copies_ahead(started.source, number, wrong)
        return mapped(started.there, self._moved) if started.has_others else started.there

    def _without_copies_ahead(self, source: Any, number: int, wrong: str) -> Any:
        there = self._at_once(source)
        if again := _difference(source, there):
            raise RuntimeError(
                f"taas: the batch is not on {self._device} what it is in memory, although it was copied twice: "
                f"{wrong}, and then {again}"
            )
        self._are_right = False
        last = max(_COMPARED_AT_FIRST - 1, (number - 1) // _THEN_ONE_OF * _THEN_ONE_OF)
        events.remark_once(
            f"batch {number} was copied to {self._device} ahead of the loop, and is not there what it is in memory: "
            f"{wrong}. The loop has the right one. From now on batches are copied when the loop gets there; "
            f"the {max(0, number - 1 - last)} before this one were not compared"
        )
        return there

    def _at_once(self, source: Any) -> Any:
        return mapped(source, lambda leaf: leaf.to(self._device) if has_to(leaf) else leaf)

    def _moved(self, leaf: Any) -> Any:
        """What has an idea of its own of how it is moved, on the loop's stream."""
        if not has_to(leaf):
            return leaf
        try:
            return leaf.to(self._device, non_blocking=True)
        except TypeError:
            return leaf.to(self._device)


def _asked_for(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return tensor.to(device, non_blocking=True)


def _is_plain(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and leaf.device.type == "cpu"


def _difference(source: Any, there: Any) -> str:
    """Where a batch is not on the device what it is in memory, in words; nothing where it is. Waits for the device."""
    leaves: list[list[Any]] = [[], []]
    for found, batch in zip(leaves, (source, there)):
        mapped(batch, found.append)
    tensors = [pair for pair in zip(*leaves) if type(pair[0]) is torch.Tensor and is_elements(pair[0])]
    for number, (meant, found) in enumerate(tensors):
        one, other = (_bytes(each) for each in (meant.to(found.device), found))
        if not torch.equal(one, other):
            wrong = (one != other).nonzero()
            first = int(wrong[0])
            return (
                f"tensor {number} ({meant.dtype}, {tuple(meant.shape)}) differs in {len(wrong)} of {len(one)} bytes, "
                f"the first of which is byte {first}: {int(one[first])} in memory, {int(other[first])} on "
                f"{found.device}"
            )
    return ""


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
