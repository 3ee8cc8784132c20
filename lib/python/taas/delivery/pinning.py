"""Batches in page-locked memory, from which an accelerator copies without waiting: torch's own, which torch keeps until the copies out
of it are done.

Most of a batch is copied into it by other threads while the loop is at the batches before.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable, NamedTuple

import torch
from torch.utils.data._utils.pin_memory import pin_memory

from ..runtime import native
from .feed import Opening
from .staged import StagedStream


_NEVER_PINNED = (int, float, bool, str, bytes, type(None))


@functools.lru_cache(maxsize=None)
def _accelerator() -> str | None:
    """The kind of accelerator that this machine has; None without one, and for one that has no pinned memory."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return found.type if found is not None and found.type != "mps" else None


def _accelerator_in_use() -> str | None:
    """To pin memory initialises CUDA, so that the program could not fork any more, and has a context on a GPU that it may not want."""
    kind = _accelerator()
    return None if kind == "cuda" and not torch.cuda.is_initialized() else kind


def in_pinned_memory(opening: Opening, initialise: Callable[[], Any] = lambda: None) -> Opening:
    """Opens the same streams. `initialise` is called when the first batch is there. Without an accelerator nothing is pinned."""
    if _accelerator() is None:
        return opening
    return dataclasses.replace(opening, open=lambda: StagedStream(opening(), lambda: PinnedCopies(initialise)))


class Started(NamedTuple):
    """A batch some of whose tensors are still being copied."""

    batch: Any
    copy: Any
    rest: bool  # something in it is torch's to pin


_WORTH_A_THREAD = 1 << 20  # bytes: less is copied before another thread has begun

class PinnedCopies:
    """As the plain loader pins a batch: the tensors in it, and what has a pin_memory() of its own. The rest stays as it is."""

    def __init__(self, initialise: Callable[[], Any]) -> None:
        self._initialise = initialise

    def start(self, batch: Any) -> Started:
        self._initialise()
        if _accelerator_in_use() is None:
            return Started(batch, None, True)
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        rest: list[Any] = []
        batch = _replaced(batch, pairs, rest)
        if native.module is None or sum(source.nbytes for source, _ in pairs) < _WORTH_A_THREAD:
            for source, target in pairs:
                target.copy_(source)
            return Started(batch, None, bool(rest))
        parts = [(target.data_ptr(), source.data_ptr(), source.nbytes) for source, target in pairs]
        return Started(batch, native.module.Copy(parts, pairs), bool(rest))

    def finish(self, started: Started) -> Any:
        if started.copy:
            started.copy.wait()
        accelerator = _accelerator_in_use() if started.rest else None
        return pin_memory(started.batch, accelerator) if accelerator else started.batch


def _replaced(value: Any, pairs: list[tuple[torch.Tensor, torch.Tensor]], rest: list[Any]) -> Any:
    """Tensors by such that are to have their bytes, each a pair. `rest` is given what is torch's to pin: all that is more than tensors
    in lists, tuples and dicts."""
    kind = type(value)
    if kind is torch.Tensor and _is_plain(value):
        pairs.append((value, _new_pinned(value)))
        return pairs[-1][1]
    if kind in (list, tuple):
        return kind(_replaced(each, pairs, rest) for each in value)
    if kind is dict:
        return {key: _replaced(each, pairs, rest) for key, each in value.items()}
    if kind not in _NEVER_PINNED:
        rest.append(value)
    return value


def _is_plain(tensor: torch.Tensor) -> bool:
    """One whose bytes are all that there is to it."""
    return (tensor.layout is torch.strided and tensor.device.type == "cpu" and tensor.is_contiguous() and not tensor.requires_grad
            and not tensor.is_conj() and not tensor.is_neg() and not tensor.is_quantized and not vars(tensor) and bool(tensor.numel())
            and not tensor.is_inference() and not tensor.is_pinned())


def _new_pinned(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
