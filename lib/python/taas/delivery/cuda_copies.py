"""Copies of batches to a GPU, on a stream of their own."""

from __future__ import annotations

from typing import Any

import torch

from .nested import has_to, mapped


class CudaCopies:
    """One stream of a GPU, for all loaders."""

    def __init__(self, index: int) -> None:
        self._device = torch.device("cuda", index)
        self._stream = torch.cuda.Stream(self._device)

    def start(self, batch: Any) -> Any:
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
