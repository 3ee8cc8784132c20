"""Copies to a device that are compared with what was copied: nobody has seen all hardware, and a wrong copy would train on in silence."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ..batch.nested import mapped
from .staged import Copies

_FIRST = 16
_EVERY = 1000


class Started(NamedTuple):
    """`source` is what is copied, where it is to be compared."""

    copy: Any
    number: int
    source: Any


class CheckedCopies:
    """The first batches, and then one of a thousand, are compared to the bit when the loop gets them, which waits for them."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._number = 0

    def start(self, batch: Any) -> Started:
        started = self._copies.start(batch)
        number = self._number
        self._number += 1
        return Started(started, number, batch if number < _FIRST or number % _EVERY == 0 else None)

    def finish(self, started: Started) -> Any:
        """Raises RuntimeError where the copy is not what was copied."""
        there = self._copies.finish(started.copy)
        if started.source is not None:
            for place, (source, copy) in enumerate(zip(_tensors_in(started.source), _tensors_in(there))):
                _compare(source, copy, f"tensor {place} of batch {started.number}")
        return there


def _tensors_in(batch: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    mapped(batch, lambda leaf: found.append(leaf) if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided else None)
    return found


def _compare(source: torch.Tensor, copy: torch.Tensor, what: str) -> None:
    if source.device.type != "cpu":  # it was there before
        return
    here, there = source.detach().reshape(-1), copy.detach().to("cpu").reshape(-1)
    what = f"taas: {what} ({source.dtype}, {list(source.shape)}) is not on {copy.device} what it is in memory: "
    if (here.dtype, here.shape) != (there.dtype, there.shape):
        raise RuntimeError(f"{what}it is {copy.dtype}, {list(copy.shape)} there")
    if torch.equal(_bytes(here), _bytes(there)):
        return
    first = int((_bytes(here) != _bytes(there)).nonzero()[0]) // here.element_size()
    raise RuntimeError(f"{what}element {first} is {there[first].item()} there and {here[first].item()} here; have the batches copied by "
                       ".to() instead of device=, and tell us which GPU it is")


def _bytes(flat: torch.Tensor) -> torch.Tensor:
    return flat.resolve_conj().resolve_neg().contiguous().view(torch.uint8)
