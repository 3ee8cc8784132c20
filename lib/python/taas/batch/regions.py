"""The memory that tensors and arrays of a batch lie in.

It is cut into parts to send, so that what shares memory goes on sharing it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Sequence

import numpy


@dataclass
class Extent:
    """Elements in memory: the first one's address, and the way to the others in bytes. `owner` keeps the memory alive.

    `grain` is what distances from others in the same part must be a multiple of. `is_alone`: it shares memory with
    nobody in the rank, whatever it does here.
    """

    owner: Any
    address: int
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    grain: int = 1
    is_alone: bool = False

    def __post_init__(self) -> None:
        steps = [(size - 1) * step for size, step in zip(self.shape, self.strides)]
        self.count = math.prod(self.shape)
        self.low = self.address + sum(step for step in steps if step < 0)
        self.high = self.address + sum(step for step in steps if step > 0) + self.itemsize if self.count else self.low

    def distinct(self) -> tuple[tuple[int, ...], int]:
        """The shape without what is only repeated (strides of 0), and how many bytes that is."""
        shape = tuple(1 if step == 0 else size for size, step in zip(self.shape, self.strides))
        return shape, math.prod(shape) * self.itemsize

    def is_sparse(self) -> bool:
        """True when there is memory of others between the elements, and no element lies in another one."""
        end = self.itemsize
        for step, size in sorted(
            (abs(step), size) for step, size in zip(self.strides, self.shape) if step and size > 1
        ):
            if step < end:
                return False
            end = step * (size - 1) + end
        return self.high - self.low > self.distinct()[1]

    def view(self, memory: Any) -> numpy.ndarray:
        """The distinct elements in `memory`, which begins at `low`."""
        kind = numpy.dtype(f"V{self.itemsize}")
        return numpy.ndarray(self.distinct()[0], kind, memory, self.address - self.low, self.strides)


class _Memory:
    """Bytes at an address, for numpy."""

    def __init__(self, owner: Any, low: int, high: int) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (low, True), "shape": (high - low,), "typestr": "|u1", "version": 3}


def bytes_at(owner: Any, low: int, high: int) -> numpy.ndarray:
    """The memory between these addresses, which `owner` keeps."""
    return numpy.asarray(_Memory(owner, low, high))


WHOLE, PACKED = 0, 1


class Regions:
    """`buffers` of all extents, and the place of each extent.

    A place is the number of its buffer, the distance from its beginning to the first element, and PACKED where the
    buffer has the elements one behind the other.
    """

    def __init__(self, extents: Sequence[Extent]) -> None:
        self.buffers: list[Any] = []
        self.places = [(-1, 0, WHOLE)] * len(extents)
        group: list[int] = []
        high = 0
        for number, extent in enumerate(extents):
            if extent.is_alone and extent.count:
                self._add_alone(extent, number)
        common = (number for number, extent in enumerate(extents) if extent.count and not extent.is_alone)
        for number in sorted(common, key=lambda number: extents[number].low):
            if group and extents[number].low >= high:
                self._add(extents, group)
                group = []
            group.append(number)
            high = max(high, extents[number].high)
        if group:
            self._add(extents, group)

    def _add(self, extents: Sequence[Extent], group: list[int]) -> None:
        members = [extents[number] for number in group]
        low = _low_of(members)
        if len(group) == 1 or low is None or _are_apart(members):
            for number in group:
                self._add_alone(extents[number], number)
            return
        for number in group:
            self.places[number] = (len(self.buffers), extents[number].address - low, WHOLE)
        self.buffers.append(bytes_at([each.owner for each in members], low, max(each.high for each in members)))

    def _add_alone(self, extent: Extent, number: int) -> None:
        memory = bytes_at(extent.owner, extent.low, extent.high)
        packed = extent.is_sparse()
        self.places[number] = (len(self.buffers), extent.address - extent.low, PACKED if packed else WHOLE)
        if packed:
            memory = numpy.ascontiguousarray(extent.view(memory)).reshape(-1).view(numpy.uint8)
        self.buffers.append(memory)


def _low_of(members: list[Extent]) -> int | None:
    """Where the part of several extents begins: a whole number of elements before each.

    None where there is no such place.
    """
    coarsest = max(members, key=lambda each: each.grain)
    lowest = min(each.low for each in members)
    low = coarsest.address - -(-(coarsest.address - lowest) // coarsest.grain) * coarsest.grain
    return low if all((each.address - low) % each.grain == 0 for each in members) else None


def _are_apart(members: list[Extent]) -> bool:
    """True for columns of one table: they lie between each other, but share no element."""
    step = math.gcd(*(step for each in members for size, step in zip(each.shape, each.strides) if size > 1))
    if not step:
        return False
    rests = sorted((each.address % step, each.itemsize) for each in members)
    ends = [*(rest for rest, _ in rests[1:]), rests[0][0] + step]
    return all(rest + size <= end for (rest, size), end in zip(rests, ends))
