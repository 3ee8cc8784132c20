"""Batches in page-locked memory, from which an accelerator copies without waiting.

Memory of the delivery is registered with CUDA where it lies, once the program has initialised CUDA; all other batches
are pinned as the plain loader does it, by a copy.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils.data._utils.pin_memory import pin_memory

from ..runtime import events, native

_PRESENT_WAY = "batches are copied once more on their way to the GPU"
_copier: Any = None  # of this process: a native CudaCopier, or False where there cannot be one


@functools.lru_cache(maxsize=None)
def _accelerator() -> str | None:
    """The kind of accelerator that this machine has; None without one, and for one that has no pinned memory."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return found.type if found is not None and found.type != "mps" else None


def pinned(batch: Any) -> Any:
    """The batch as the plain loader gives it with pin_memory=True: as it is on a machine without an accelerator.

    Tensors in registered memory are pinned already: torch gives them back themselves.
    """
    accelerator = _accelerator()
    return pin_memory(batch, accelerator) if accelerator else batch


def copier() -> Any:
    """What knows of copies out of registered memory; None as long as the program uses no GPU.

    Called for each batch: the program may begin to use another one. Initialises nothing, so that the program can still
    fork.
    """
    global _copier
    if _copier is None and torch.cuda.is_initialized():
        _copier = _find()
    if not _copier:
        return None
    for device in _copier.new_devices():
        _copier.add_streams(device, _streams_of(device))
    if _copier.problem:
        events.remark_once(f"{_copier.problem}; {_PRESENT_WAY}")
    return _copier if _copier.is_ready else None


def _find() -> Any:
    try:
        return native.module.CudaCopier()
    except RuntimeError as error:
        events.remark_once(f"memory of batches cannot be registered with CUDA ({error}); {_PRESENT_WAY}")
        return False


def _streams_of(device: int) -> list[int]:
    """All streams of a device that torch has: the default one, and its pools, which it deals out in turn."""
    with torch.cuda.device(device):
        handles = {torch.cuda.default_stream().cuda_stream}
        least, greatest = torch.cuda.Stream.priority_range()  # type: ignore[call-arg]  # a static method
        for priority in range(greatest, least + 1):
            while (handle := torch.cuda.Stream(priority=priority).cuda_stream) not in handles:
                handles.add(handle)
    return sorted(handles)
