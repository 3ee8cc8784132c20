"""What the pickle of a batch calls in the rank: tensors, arrays and storages on the memory that came with it.

A `hole` is what stands in the pickle where memory belongs: a part, and where in it the first element lies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy
import torch

Hole = tuple[Any, int]


class Part:
    """A part of the payload. With `is_packed` the elements of one tensor lie in it one behind the other."""

    def __init__(self, memory: memoryview, is_packed: bool = False) -> None:
        self.memory = memory
        self._is_packed = is_packed
        self._storage: Any = None

    def storage(self) -> Any:
        """The memory as torch has it: one for all tensors that share it."""
        if self._storage is None:
            self._storage = torch.frombuffer(self.memory, dtype=torch.uint8).untyped_storage()
        return self._storage

    def spread(self, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
        """Lays the elements out as they were. `strides` and `offset` count bytes."""
        if not self._is_packed:
            return
        ahead = sum((size - 1) * step for size, step in zip(shape, strides) if step > 0)
        kind = numpy.dtype(f"V{itemsize}")
        distinct = tuple(1 if step == 0 else size for size, step in zip(shape, strides))
        values = numpy.frombuffer(self.memory, kind).reshape(distinct)
        self.memory = memoryview(bytearray(offset + ahead + itemsize))
        numpy.ndarray(distinct, kind, self.memory, offset, strides)[...] = values
        self._is_packed = False


def tensor(
    hole: Hole,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    bits: tuple[bool, bool],
) -> torch.Tensor:
    """`bits`: the elements are conjugated, and negated, when they are read."""
    part, offset = hole
    if math.prod(shape) == 0:
        made = torch.empty_strided(shape, stride, dtype=dtype, device="cpu")
    else:
        size = dtype.itemsize
        part.spread(size, shape, tuple(step * size for step in stride), offset)
        made = torch.empty(0, dtype=dtype, device="cpu").set_(part.storage(), offset // size, shape, stride)
    made = torch._neg_view(made) if bits[1] else made
    made = made.conj() if bits[0] else made
    return made.requires_grad_() if requires_grad else made


def parameter(*memory: Any) -> torch.nn.Parameter:
    """As tensor()."""
    made = tensor(*memory)
    return torch.nn.Parameter(made.detach(), made.requires_grad)


def array(hole: Hole, dtype: numpy.dtype, shape: tuple[int, ...], order: Any, writeable: bool) -> numpy.ndarray:
    """`order` is "C" or "F". It is not empty."""
    part, offset = hole
    made = numpy.ndarray(shape, dtype, part.memory, offset, order=order)
    if not writeable:
        made.flags.writeable = False
    return made


def storage(hole: Hole, size: int) -> torch.UntypedStorage:
    """What a tensor lies in that is pickled in its own way."""
    part, offset = hole
    if size == 0:
        return torch.UntypedStorage(0)
    if offset == 0 and size == len(part.memory):
        return part.storage()
    return torch.frombuffer(part.memory[offset : offset + size], dtype=torch.uint8).untyped_storage()
