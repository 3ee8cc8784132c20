"""Batches that are more than a few tensors: pickled as torch's own workers do it, with the memory of tensors beside it.

The pickle has a hole for each tensor, array and storage. The payload is the memory, part by part; then for each hole
its place (part, distance from the part's beginning, packed or not), then for each part where it begins and ends, then
the pickle.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, NamedTuple

import numpy
import torch
from torch._tensor import _rebuild_from_type_v2

from ..sending import by_value
from ..sending.recipe_pickle import typed_storage
from . import rebuild
from .layout import spans_of
from .regions import Extent, Regions

KEEPS_READ_ONLY = pickle.DEFAULT_PROTOCOL >= 5
"""Whether arrays that multiprocessing sends stay read-only."""

_HOLE = bytearray()
_OF_A_GRAPH = (
    "a tensor of the batch belongs to an autograd graph, which stays in the process that made it: "
    "call detach() on it in the dataset or in collate_fn"
)


class Pickled(NamedTuple):
    """The buffers: parts, then the places, the table of parts, and the pickle."""

    buffers: list[Any]
    places: int
    parts: int


def pickled(batch: Any) -> Pickled:
    """The batch in buffers. Raises Unpicklable, and RuntimeError for a tensor with a history."""
    try:
        stream, extents = _dumped(batch, _Pickler)
    except _OfAGraph:
        raise RuntimeError(_OF_A_GRAPH) from None
    except Exception:
        stream, extents = _dumped_by_value(batch)
    regions = Regions(extents)
    places = numpy.array(regions.places, dtype="<i8").reshape(-1, 3)
    parts = numpy.array(spans_of(regions.buffers), dtype="<i8").reshape(-1, 2)
    tables = [memoryview(places.tobytes()), memoryview(parts.tobytes())]
    return Pickled([*regions.buffers, *tables, stream], len(places), len(parts))


def _dumped(batch: Any, kind: type) -> tuple[Any, list[Extent]]:
    file = io.BytesIO()
    pickler = kind(file)
    pickler.dump(batch)
    return file.getbuffer(), pickler.extents


def _dumped_by_value(batch: Any) -> tuple[Any, list[Extent]]:
    """Lambdas and local classes go along, where cloudpickle is there."""
    try:
        return _dumped(batch, _ByValue)
    except Exception as error:
        hint = (
            ""
            if by_value.CAN_SEND_BY_VALUE
            else "; with `pip install cloudpickle` lambdas and local classes can be sent"
        )
        raise by_value.Unpicklable(
            f"a batch holds what cannot be pickled: {by_value.first_line(error)}{hint}"
        ) from error


class _OfAGraph(Exception):
    """A tensor with a history."""


class _Holes:
    """A pickler's part that looks after memory. `extents` are what the holes are for, in order."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=5, buffer_callback=self._is_in_band)  # type: ignore[call-arg]
        self.extents: list[Extent] = []

    @staticmethod
    def _is_in_band(buffer: pickle.PickleBuffer) -> bool:
        return memoryview(buffer).obj is not _HOLE

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            return self._tensor(kind, value)
        if kind is numpy.ndarray:
            return self._array(value)
        if kind is torch.UntypedStorage and value.device.type == "cpu":
            extent = Extent(value, value.data_ptr(), 1, (value.nbytes(),), (1,))
            return rebuild.storage, (self._hole(extent), value.nbytes())
        if kind is torch.storage.TypedStorage and value.device.type == "cpu":
            return typed_storage, (value.untyped(), value.dtype)
        if isinstance(value, torch.Tensor) and _is_pickled_as_tensor(kind) and _is_plain(value):
            return _rebuild_from_type_v2, (
                rebuild.tensor,
                kind,
                self._memory_of(value, True),
                torch._utils._get_obj_state(value),
            )
        if isinstance(value, numpy.ndarray):
            return value.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
        above = getattr(super(), "reducer_override", None)
        return above(value) if above else NotImplemented

    def _hole(self, extent: Extent) -> pickle.PickleBuffer:
        self.extents.append(extent)
        return pickle.PickleBuffer(_HOLE)

    def _tensor(self, kind: type, tensor: torch.Tensor) -> Any:
        if tensor.requires_grad and not tensor.is_leaf:
            raise _OfAGraph
        if not _is_plain(tensor):
            return tensor.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
        return rebuild.tensor if kind is torch.Tensor else rebuild.parameter, self._memory_of(tensor, False)

    def _memory_of(self, tensor: torch.Tensor, with_bits: bool) -> tuple[Any, ...]:
        """What rebuild.tensor takes. torch's own workers drop the bits."""
        size, shape, stride = tensor.itemsize, tuple(tensor.shape), tensor.stride()
        hole = self._hole(Extent(tensor, tensor.data_ptr(), size, shape, tuple(step * size for step in stride), size))
        bits = (tensor.is_conj(), tensor.is_neg()) if with_bits else (False, False)
        return hole, tensor.dtype, shape, stride, tensor.requires_grad, bits

    def _array(self, array: numpy.ndarray) -> Any:
        if array.dtype.hasobject or not (array.nbytes and array.dtype.isnative):
            return array.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
        order = "F" if array.flags.fnc else "C"
        array = numpy.asarray(array, order=order)  # type: ignore[call-overload]
        extent = Extent(array, _address_of(array), 1, (array.nbytes,), (1,), is_alone=True)
        return rebuild.array, (
            self._hole(extent),
            array.dtype,
            array.shape,
            order,
            array.flags.writeable or not KEEPS_READ_ONLY,
        )


def _address_of(array: numpy.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _is_plain(tensor: torch.Tensor) -> bool:
    """True for elements in memory of the CPU, and nothing else."""
    return tensor.layout is torch.strided and tensor.is_cpu and not tensor.is_quantized and not tensor.is_nested


def _is_pickled_as_tensor(kind: Any) -> bool:
    """True for a subclass whose objects are elements in memory, and attributes."""
    return (
        kind.__reduce_ex__ is torch.Tensor.__reduce_ex__
        and kind.__reduce__ is torch.Tensor.__reduce__
        and kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    )


class _Pickler(_Holes, pickle.Pickler):
    """Classes and functions go by their names."""


class _ByValue(_Holes, by_value.cloudpickle.Pickler if by_value.CAN_SEND_BY_VALUE else pickle.Pickler):  # type: ignore[misc]
    """What has no name goes along."""
