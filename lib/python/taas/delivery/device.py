"""Copies of batches to a GPU."""

from __future__ import annotations

import functools
from typing import Any

import torch

from .nested import has_to, mapped


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
    return copies.finish(copies.start(batch))


def copies_to(device: torch.device) -> CudaCopies:
    """Initialises CUDA. "cuda" is the GPU that the program uses now."""
    return _of_gpu(torch.cuda.current_device() if device.index is None else device.index)


@functools.lru_cache(maxsize=None)
def _of_gpu(index: int) -> CudaCopies:
    return CudaCopies(index)


class CudaCopies:
    """Copies on a stream of their own, one of each GPU for all loaders."""

    def __init__(self, index: int) -> None:
        self._device = torch.device("cuda", index)
        self._stream = torch.cuda.Stream(self._device)

    def start(self, batch: Any) -> Any:
        """Asks for the copy. What it returns is for finish() alone; `batch` may be let go."""
        tensors: list[torch.Tensor] = []
        others: list[Any] = []

        def copied(leaf: Any) -> Any:
            if not _is_plain(leaf):
                others.append(leaf)
                return leaf
            tensors.append(leaf.to(self._device, non_blocking=True))
            return tensors[-1]

        with torch.cuda.stream(self._stream):
            there = mapped(batch, copied)
            event = self._stream.record_event()
        return there, tensors, bool(others), event

    def finish(self, started: Any) -> Any:
        """The batch on the device, for all that the loop asks of the device from now on."""
        there, tensors, has_others, event = started
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(event)
        for tensor in tensors:
            tensor.record_stream(stream)  # the memory is the copying stream's, and this one uses it
        return mapped(there, self._moved) if has_others else there

    def _moved(self, leaf: Any) -> Any:
        """What has an idea of its own of how it is moved, on the loop's stream."""
        if not has_to(leaf):
            return leaf
        try:
            return leaf.to(self._device, non_blocking=True)
        except TypeError:
            return leaf.to(self._device)


def _is_plain(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and leaf.device.type == "cpu"
