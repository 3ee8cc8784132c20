"""A batch as buffers, and back: what crosses to the rank.

The first buffer is the table: how many others there are, and where in the payload each of them begins and ends, in
bytes (64-bit integers). The second is the pickle, the others are the memory of tensors and arrays.

What the rank gets is what torch's own workers would have sent, but for this: of a tensor that has less than half of its
storage come its elements alone; attributes of tensors stay, and so do conjugated values.
"""

from __future__ import annotations

import io
import itertools
import pickle
import struct
from typing import Any

import torch

from . import by_value, layout
from .tensors import BelongsToGraph, Tensors, elements_of, is_simple

_WORD_BYTES = 8
_SMALL_BYTES = 32 << 10
_SMALL_PART = 4
_CONTAINERS = frozenset((list, tuple, dict))
_MOST_TENSORS = 16
_HEADS_KEPT = 256
_LONGEST_HEAD = 8 << 10
_heads: dict[Any, tuple[Any, Any]] = {}
"""Table and pickle of simple batches, by form: it takes longer to pickle one than to look at it."""


def encode(batch: Any) -> list[Any]:
    """Buffers that are contiguous, and refer to the batch's memory. Raises Unpicklable, and BelongsToGraph."""
    form, tensors = _form_of(batch)
    if form and (head := _heads.get(form)):
        return [*head, *map(elements_of, tensors)]
    buffers = _dumped(batch)
    places = layout.spans_of(buffers, _WORD_BYTES * (1 + 2 * len(buffers)))
    table = struct.pack(f"<{1 + 2 * len(buffers)}q", len(buffers), *itertools.chain.from_iterable(places))
    if form and len(buffers[0]) < _LONGEST_HEAD:
        if len(_heads) == _HEADS_KEPT:
            _heads.clear()
        _heads[form] = table, buffers[0]
    return [table, *buffers]


def decode(payload: memoryview) -> Any:
    """The batch. `payload` is writable, and lives as long as one of its views does. Inverse of encode.

    What is small beside the payload gets memory of its own, so that a label that is kept does not keep the images. Only
    for bytes from a process of the same run.
    """
    (count,) = struct.unpack_from("<q", payload)
    begin, end, *places = struct.unpack_from(f"<{2 * count}q", payload, _WORD_BYTES)
    most = min(_SMALL_BYTES, len(payload) // _SMALL_PART)
    buffers = [
        memoryview(bytearray(payload[begin:end])) if end - begin <= most else payload[begin:end]
        for begin, end in zip(places[::2], places[1::2])
    ]
    return pickle.loads(payload[begin:end], buffers=buffers)


def _form_of(batch: Any) -> tuple[Any, Any]:
    """What determines the head of a simple batch, and its tensors; None for every other batch."""
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
    if not all(map(is_simple, tensors)):
        return None, ()
    if len({each.untyped_storage()._cdata for each in tensors}) < len(tensors):
        return None, ()
    return (kind, names, *[(each.dtype, each.shape) for each in tensors]), tensors


def _dumped(batch: Any) -> list[Any]:
    """The pickle, and what is beside it."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    try:
        pickler.dump(batch)
    except (BelongsToGraph, MemoryError):
        raise
    except Exception as error:
        raise by_value.Unpicklable(
            f"a batch holds what cannot be pickled: {by_value.first_line(error)}{by_value.hint()}"
        ) from error
    return [file.getbuffer(), *(buffer.raw() for buffer in pickler.beside)]


class _Pickler(by_value.ByName):
    def __init__(self, file: io.BytesIO) -> None:
        self.beside: list[pickle.PickleBuffer] = []
        super().__init__(file, protocol=5, buffer_callback=self.beside.append)
        self._tensors = Tensors(copies_parts=True)

    def reducer_override(self, value: Any) -> Any:
        found = self._tensors.reduced(value)
        return super().reducer_override(value) if found is NotImplemented else found
