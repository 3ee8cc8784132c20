"""A batch as buffers, and back: what crosses to the rank.

The first buffer is the head: how many others there are, where each begins and ends in the payload (64-bit integers),
and the pickle. The others are the memory of tensors and arrays.

What the rank gets is what torch's own workers would have sent, but for this: a tensor that has less than half of its
storage comes as its elements alone, one behind the other; attributes of tensors and conjugate bits stay; arrays can be
written to.
"""

from __future__ import annotations

import io
import itertools
import pickle
import struct
from typing import Any, Callable

import torch

from . import by_value, layout
from .tensors import OfAGraph, Tensors, is_whole, memory_of

_COUNT = struct.Struct("<q")
_SMALL_BYTES = 32 << 10
_SMALL_PART = 4
_CONTAINERS = frozenset((list, tuple, dict))
_MOST_TENSORS = 16
_HEADS_KEPT = 256
_heads: dict[Any, bytes] = {}
"""By form: most batches of a loader look alike, and pickling one takes longer than looking at it."""


def encode(batch: Any) -> list[Any]:
    """Buffers that are contiguous, and refer to the batch's memory. Raises Unpicklable, and OfAGraph."""
    form, tensors = _form_of(batch)
    if form and (head := _heads.get(form)):
        return [head, *map(memory_of, tensors)]
    stream, beside = _dumped(batch)
    spans = layout.spans_of(beside, _COUNT.size * (1 + 2 * len(beside)) + len(stream))
    places = itertools.chain.from_iterable(spans)
    head = struct.pack(f"<{1 + 2 * len(beside)}q", len(beside), *places) + stream
    if form:
        if len(_heads) == _HEADS_KEPT:
            _heads.clear()
        _heads[form] = head
    return [head, *beside]


def decode(payload: memoryview, apart: bool = True) -> Any:
    """The batch. `payload` is writable, and lives as long as one of its views does. Inverse of encode.

    `apart`: what is small beside the payload gets memory of its own, so that a label that is kept does not keep the
    images. Only for bytes from a process of the same run.
    """
    (count,) = _COUNT.unpack_from(payload)
    places = struct.unpack_from(f"<{2 * count}q", payload, _COUNT.size)
    most = min(_SMALL_BYTES, len(payload) // _SMALL_PART) if apart else -1
    buffers = [
        memoryview(bytearray(payload[begin:end])) if end - begin <= most else payload[begin:end]
        for begin, end in zip(places[::2], places[1::2])
    ]
    return pickle.loads(payload[_COUNT.size * (1 + 2 * count) :], buffers=buffers)


def _form_of(batch: Any) -> tuple[Any, Any]:
    """What batches with equal heads have in common, and their tensors; None for those with more than a few tensors."""
    kind = type(batch)
    tensors, names = batch, None
    if kind is torch.Tensor:
        tensors = (batch,)
    elif kind not in _CONTAINERS or len(batch) > _MOST_TENSORS:
        return None, ()
    elif kind is dict:
        tensors, names = batch.values(), tuple(batch)
        if not all(type(name) is str for name in names):
            return None, ()
    if not all(type(each) is torch.Tensor and is_whole(each) for each in tensors):
        return None, ()
    if len({each.untyped_storage()._cdata for each in tensors}) < len(tensors):
        return None, ()
    return (kind, names, *[(each.dtype, each.shape) for each in tensors]), tensors


def _dumped(batch: Any) -> tuple[bytes, list[memoryview]]:
    """Classes and functions go by their names; where that fails, lambdas and local classes go along."""
    try:
        return _dumped_by(_ByName, batch)
    except OfAGraph:
        raise
    except Exception:
        pass
    try:
        return _dumped_by(_ByValue, batch)
    except Exception as error:
        raise by_value.Unpicklable(
            f"a batch holds what cannot be pickled: {by_value.first_line(error)}{by_value.hint()}"
        ) from error


def _dumped_by(kind: Callable[[Any, Any], Any], batch: Any) -> tuple[bytes, list[memoryview]]:
    file = io.BytesIO()
    beside: list[pickle.PickleBuffer] = []
    kind(file, beside).dump(batch)
    return file.getvalue(), [buffer.raw() for buffer in beside]


class _ByName(pickle.Pickler):
    def __init__(self, file: io.BytesIO, beside: list[pickle.PickleBuffer]) -> None:
        super().__init__(file, protocol=5, buffer_callback=beside.append)
        self._tensors = Tensors(copies_parts=True)

    def reducer_override(self, value: Any) -> Any:
        return self._tensors.reduced(value)


class _ByValue(by_value.ByValue):
    def __init__(self, file: io.BytesIO, beside: list[pickle.PickleBuffer]) -> None:
        super().__init__(file, protocol=5, buffer_callback=beside.append)
        self._tensors = Tensors(copies_parts=True)

    def reducer_override(self, value: Any) -> Any:
        found = self._tensors.reduced(value)
        return super().reducer_override(value) if found is NotImplemented else found
