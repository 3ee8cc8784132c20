"""Copies of batches to a GPU."""

from __future__ import annotations

import collections
import functools
from dataclasses import dataclass, field
from typing import Any

import torch

from ..runtime import events
from ..sending.tensors import is_plain
from .nested import has_to, mapped
from .pinning import Twins

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


def copies_to(device: torch.device) -> CudaCopies:
    """Initialises CUDA. "cuda" is the GPU that the program uses now."""
    return CudaCopies(_of_number(torch.cuda.current_device() if device.index is None else device.index))


@functools.lru_cache(maxsize=None)
def _of_number(index: int) -> _Gpu:
    return _Gpu(index)


class _Gpu:
    """What all loaders know of one."""

    def __init__(self, index: int) -> None:
        self.device = torch.device("cuda", index)
        self.stream = torch.cuda.Stream(self.device)
        """Of the copies alone."""
        self.batches = 0
        self.has_been_right = True
        """No batch was found that is not what it was in memory."""


@dataclass
class Started:
    """A batch on its way to a GPU: into pinned memory, and from there to the device."""

    source: Any
    twins: Twins | None
    there: Any = None
    tensors: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    """Of the source, and on the device."""
    has_others: bool = False
    event: Any = None
    """None until the device was asked for the copy."""


class CudaCopies:
    """The copies of one loop, on a stream that those of a GPU have for themselves.

    The first ones, and then one of a thousand, are compared on the device with what was to be copied. Where they
    differ, a line says so, and from then on batches are copied when the loop gets there, while it waits.
    """

    def __init__(self, gpu: _Gpu) -> None:
        self._gpu = gpu
        self._read: collections.deque[tuple[Any, Any]] = collections.deque()
        """Events, and what is read until they have passed: CUDA does not promise that a copy out of memory that is not
        pinned is over when the call returns.
        """

    def copied(self, batch: Any) -> Any:
        """The batch on the device, where nothing is copied ahead."""
        return self.finish(Started(batch, None))

    def start(self, batch: Any) -> Started:
        """Begins the copy. What it returns is for the other functions alone."""
        started = Started(batch, Twins(batch) if self._gpu.has_been_right else None)
        self.go_on(started)
        return started

    def go_on(self, started: Started | None) -> None:
        """Called while the loop is at a batch before it: asks the device, once the batch is in pinned memory."""
        if started and started.event is None and started.twins and started.twins.are_done:
            self._ask(started)

    def _ask(self, started: Started) -> None:
        while self._read and self._read[0][0].query():
            self._read.popleft()
        twin_of = started.twins.result() if started.twins else lambda leaf: leaf
        started.tensors.clear()
        read: list[torch.Tensor] = []

        def copied(leaf: Any) -> Any:
            if not is_plain(leaf):
                started.has_others = True
                return leaf
            read.append(twin_of(leaf))
            started.tensors.append((leaf, _asked_for(read[-1], self._gpu.device)))
            return started.tensors[-1][1]

        with torch.cuda.stream(self._gpu.stream):
            started.there = mapped(started.source, copied)
            started.event = self._gpu.stream.record_event()
        self._read.append((started.event, read))

    def finish(self, started: Started) -> Any:
        """The batch on the device, for all that the loop asks of the device from now on."""
        gpu = self._gpu
        if not gpu.has_been_right:
            return self._at_once(started.source)
        if started.event is None:
            self._ask(started)
        stream = torch.cuda.current_stream(gpu.device)
        stream.wait_event(started.event)
        for _, tensor in started.tensors:
            tensor.record_stream(stream)  # the memory is the copying stream's, and this one uses it
        number, gpu.batches = gpu.batches, gpu.batches + 1
        if number < _COMPARED_AT_FIRST or number % _THEN_ONE_OF == 0:
            if wrong := _difference(started.tensors):
                return self._without_copies_ahead(started.source, number, wrong)
        return mapped(started.there, self._moved) if started.has_others else started.there

    def _without_copies_ahead(self, source: Any, number: int, wrong: str) -> Any:
        device = self._gpu.device
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        there = self._at_once(source, pairs)
        if again := _difference(pairs):
            raise RuntimeError(
                f"taas: the batch is not on {device} what it is in memory, although it was copied twice: {wrong}, and "
                f"then {again}"
            )
        self._gpu.has_been_right = False
        last = max(_COMPARED_AT_FIRST - 1, (number - 1) // _THEN_ONE_OF * _THEN_ONE_OF)
        events.remark_once(
            f"batch {number} was copied to {device} ahead of the loop, and is not there what it is in memory: {wrong}. "
            "The loop has the right one. From now on batches are copied when the loop gets there; the "
            f"{max(0, number - 1 - last)} before this one were not compared"
        )
        return there

    def _at_once(self, source: Any, pairs: list[tuple[torch.Tensor, torch.Tensor]] | None = None) -> Any:
        """Copies while the program waits. `pairs`: what was copied, and to what."""

        def moved(leaf: Any) -> Any:
            there = leaf.to(self._gpu.device) if has_to(leaf) else leaf
            if pairs is not None and is_plain(leaf):
                pairs.append((leaf, there))
            return there

        return mapped(source, moved)

    def _moved(self, leaf: Any) -> Any:
        """What has an idea of its own of how it is moved, on the loop's stream."""
        if not has_to(leaf):
            return leaf
        try:
            return leaf.to(self._gpu.device, non_blocking=True)
        except TypeError:
            return leaf.to(self._gpu.device)

    def close(self) -> None:
        """The loop is over: waits for the copies that it has asked for, and lets go of what they read."""
        while self._read:
            self._read[0][0].synchronize()
            self._read.popleft()


def _asked_for(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return tensor.to(device, non_blocking=True)


def _difference(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> str:
    """Where a tensor is not on the device what it is in memory, in words; nothing where none is. Waits for the device.

    A GPU that has no memory for it is not asked.
    """
    for number, (meant, found) in enumerate(pairs):
        try:
            one, other = (_bytes(each) for each in (meant.to(found.device), found))
            if torch.equal(one, other):
                continue
            wrong = (one != other).nonzero()
        except torch.OutOfMemoryError:
            continue
        first = int(wrong[0])
        return (
            f"tensor {number} ({meant.dtype}, {tuple(meant.shape)}) differs in {len(wrong)} of {len(one)} bytes, the "
            f"first of which is byte {first}: {int(one[first])} in memory, {int(other[first])} on {found.device}"
        )
    return ""


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
