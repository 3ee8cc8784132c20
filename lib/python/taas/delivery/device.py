"""Batches on a GPU: the next ones are copied while the loop is at this one, through pinned memory."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch

from ..batch.cuda_copies import CudaCopies
from .checked_copies import CheckedCopies
from .feed import Opening
from .pinning import in_pinned_memory
from .staged import Copies, StagedStream


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
        raise ValueError(f"device={device!r}, but PyTorch sees no GPU on this machine: leave out device, or see what nvidia-smi "
                         "and CUDA_VISIBLE_DEVICES say")
    if wanted.index is not None and wanted.index >= count:
        raise ValueError(f"device={device!r}, but PyTorch sees {count} GPU{'s' if count > 1 else ''} here, of which the last is "
                         f"'cuda:{count - 1}'")
    return wanted


def on_device(opening: Opening, device: torch.device) -> Opening:
    """Opens the same streams, whose batches come on the device. Nothing is done on it before the first batch is there."""
    pinned = in_pinned_memory(opening, initialise=lambda: _copies_to(device))
    return dataclasses.replace(opening, open=lambda: StagedStream(pinned(), lambda: _copies_to(device)))


def _copies_to(device: torch.device) -> Copies:
    """Initialises CUDA. "cuda" is the GPU that the program uses now."""
    return _copies_of_gpu(torch.cuda.current_device() if device.index is None else device.index)


@functools.lru_cache(maxsize=None)
def _copies_of_gpu(index: int) -> Copies:
    return CheckedCopies(CudaCopies(index))
