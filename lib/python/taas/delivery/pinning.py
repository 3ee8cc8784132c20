"""Batches in pinned memory, out of which an accelerator copies while the program goes on.

It is memory of torch's own allocator, of its own for each tensor, as with the plain loader: torch knows which copies
read it, and uses it again when they are done. Nothing is pinned before the program has initialised its accelerator, and
nothing here initialises it.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils.data._utils.pin_memory import pin_memory

from ..runtime import events, native
from ..sending.tensors import is_elements
from .nested import mapped

_refused = False
"""torch has found no memory that it could pin."""


@functools.lru_cache(maxsize=None)
def _accelerator() -> Any:
    """torch's module for the accelerator that it is built for; None where it has no pinned memory. Asks no driver."""
    kind = torch.accelerator.current_accelerator()
    module = torch.get_device_module(kind.type) if kind is not None else None
    return module if hasattr(module, "is_initialized") else None


def _is_possible() -> bool:
    return not _refused and native.module is not None and _accelerator() is not None and _accelerator().is_initialized()


class Pinned:
    """A batch on its way into pinned memory: the copy goes on by itself."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._copy: Any = None
        if _is_possible():
            self._begin(batch)

    def _begin(self, batch: Any) -> None:
        global _refused
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []

        def twin(leaf: Any) -> Any:
            if type(leaf) is not torch.Tensor or not is_elements(leaf) or not leaf.is_contiguous() or leaf.is_pinned():
                return leaf
            pairs.append((_pinned_like(leaf), leaf))
            return pairs[-1][0]

        try:
            there = mapped(batch, twin)
        except RuntimeError as error:
            _refused = True
            said = str(error).partition("\n")[0]
            events.remark_once(
                f"torch can pin no memory for batches ({said}): they come in ordinary memory from now on"
            )
            return
        parts = [(there.data_ptr(), here.data_ptr(), here.nbytes) for there, here in pairs]
        self._copy = native.module.Copy(parts, pairs)
        self._batch = there

    @property
    def is_done(self) -> bool:
        return self._copy is None or self._copy.is_done

    def result(self) -> Any:
        """The batch, with tensors in pinned memory. What is not just elements in order is as it was."""
        if self._copy is not None:
            self._copy.wait()
            self._copy = None
        return self._batch


class PinnedCopies:
    """What a loader with pin_memory=True gives: also objects that know how to pin themselves."""

    def start(self, batch: Any) -> Pinned:
        """Asks for the copy. What it returns is for the other functions alone; `batch` may be let go."""
        return Pinned(batch)

    def go_on(self, started: Pinned | None) -> None:
        """Called while the loop is at a batch before it."""

    def finish(self, started: Pinned) -> Any:
        """The batch."""
        batch = started.result()
        return pin_memory(batch) if _is_possible() else batch


def _pinned_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu", pin_memory=True)
