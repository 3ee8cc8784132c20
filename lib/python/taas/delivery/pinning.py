"""Batches in pinned memory, out of which an accelerator copies while the program goes on.

It is memory of torch's own allocator, for each tensor by itself, as with the plain loader. Nothing is pinned before
the program has initialised its accelerator, and nothing here initialises it.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.data._utils.pin_memory import pin_memory

from ..runtime import events, native
from ..sending.tensors import is_plain
from .nested import leaves_of


@functools.lru_cache(maxsize=None)
def _accelerator() -> Any:
    """torch's module for the accelerator that it is built for; None where it has no pinned memory. Asks no driver."""
    kind = torch.accelerator.current_accelerator()
    module = torch.get_device_module(kind.type) if kind is not None else None
    return module if hasattr(module, "is_initialized") else None


def _is_possible() -> bool:
    return native.module is not None and _accelerator() is not None and _accelerator().is_initialized()


class Twins:
    """Pinned copies of a batch's tensors, as far as they are plain and without gaps.

    Threads make them: result() waits for them.
    """

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self._copy: Any = None
        self._twins: dict[int, torch.Tensor] = {}
        self.are_refused = False
        """torch has not pinned the memory for one of them."""
        if not _is_possible():
            return
        tensors = {
            id(leaf): leaf for leaf in leaves_of(batch) if is_plain(leaf) and _is_dense(leaf.shape, leaf.stride())
        }
        try:
            twins = {key: _pinned_like(tensor) for key, tensor in tensors.items() if not tensor.is_pinned()}
        except RuntimeError as error:
            self.are_refused = True
            said = str(error).partition("\n")[0]
            events.remark_once(f"torch has pinned no memory for a batch ({said}): it comes in ordinary memory")
            return
        pairs = [(twin, tensors[key]) for key, twin in twins.items()]
        parts = [(twin.data_ptr(), tensor.data_ptr(), tensor.nbytes) for twin, tensor in pairs]
        self._copy = native.module.Copy(parts, pairs)
        self._twins = twins

    @property
    def are_done(self) -> bool:
        return self._copy is None or self._copy.is_done

    def result(self) -> Callable[[Any], Any]:
        """What gives a tensor of the batch in its place its twin, and everything else as it is."""
        if self._copy is not None:
            self._copy.wait()
        return lambda leaf: self._twins.get(id(leaf), leaf)


class PinnedCopies:
    """What a loader with pin_memory=True gives: torch's own function walks through the batch, and finds the copies of
    most tensors made.
    """

    def start(self, batch: Any) -> Twins:
        """Begins the copy. What it returns is for the other functions alone."""
        return Twins(batch)

    def go_on(self, started: Twins | None) -> None:
        """Called while the loop is at a batch before it."""

    def finish(self, started: Twins) -> Any:
        """The batch."""
        if started.are_refused or not _is_possible():
            return started.batch
        with _InPlaceOfPinning(started.result()):
            return pin_memory(started.batch)

    def close(self) -> None:
        """The loop is over."""


class _InPlaceOfPinning(TorchFunctionMode):
    """Tensor.pin_memory() gives what is pinned already."""

    def __init__(self, twin_of: Callable[[Any], Any]) -> None:
        super().__init__()
        self._twin_of = twin_of

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.pin_memory and (twin := self._twin_of(args[0])) is not args[0]:
            return twin
        return func(*args, **(kwargs or {}))


@functools.lru_cache(maxsize=1024)
def _is_dense(shape: torch.Size, stride: tuple[int, ...]) -> bool:
    """True where elements have no gaps between them, in whatever order: their bytes can be copied as they lie."""
    elements = 1
    for step, size in sorted((step, size) for step, size in zip(stride, shape) if size != 1):
        if step != elements:
            return False
        elements *= size
    return True


def _pinned_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu", pin_memory=True)
