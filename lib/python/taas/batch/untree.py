"""A description and a payload as the batch again: large tensors and arrays are views of the payload."""

from __future__ import annotations

import functools
import json
import math
import pickle
from typing import Any, Callable, Iterator

import numpy
import torch

from .bounded import Bounded
from .rebuild import Hole, Part
from .regions import PACKED

Builder = Callable[[Any], Any]

_BUILDERS_BYTES = 4 << 20
_BUILDER_FOR_A_BYTE = 10  # about: closures for each node
_SMALL_BYTES = 32 << 10
_SMALL_PART = 4
_builders = Bounded(_BUILDERS_BYTES)


def decode(description: str, payload: Any, apart: bool = True) -> Any:
    """The batch. `payload` is a writable buffer that lives as long as one of its views does. Inverse of tree.encode.

    `apart`: what is small beside the payload gets memory of its own, so that a label that is kept does not keep the
    images.
    """
    take = _take_apart if apart else _take
    if description.startswith('{"object"'):
        return _unpickled(json.loads(description), memoryview(payload).cast("B"), take)
    return _builder_of(description)(functools.partial(take, payload))


def _take(payload: Any, start: int, end: int) -> Any:
    return payload[start:end]


def _take_apart(payload: Any, start: int, end: int) -> Any:
    size = end - start
    is_small = size <= _SMALL_BYTES and size * _SMALL_PART <= len(payload)
    return memoryview(bytearray(payload[start:end])) if is_small else payload[start:end]


def _builder_of(description: str) -> Builder:
    """What the description means, worked out once: batches of an epoch mostly look alike."""
    builder = _builders.get(description)
    if builder is None:
        builder = _build(json.loads(description))
        _builders.add(description, builder, len(description) * _BUILDER_FOR_A_BYTE)
    return builder


def _build(node: dict[str, Any]) -> Builder:
    kind = next(iter(node))
    return _BUILDERS[kind](node)


def _tensor(node: dict[str, Any]) -> Builder:
    dtype, shape, at = getattr(torch, node["tensor"]), tuple(node["shape"]), node["at"]
    end = at + math.prod(shape) * dtype.itemsize
    if end == at:
        return lambda take: torch.empty(shape, dtype=dtype, device="cpu")
    frombuffer = torch.frombuffer
    if len(shape) == 1:
        return lambda take: frombuffer(take(at, end), dtype=dtype)
    return lambda take: frombuffer(take(at, end), dtype=dtype).view(shape)


def _array(node: dict[str, Any]) -> Builder:
    dtype, shape, at = numpy.dtype(node["array"]), tuple(node["shape"]), node["at"]
    end = at + math.prod(shape) * dtype.itemsize
    if end == at:
        return lambda take: numpy.empty(shape, dtype)
    return lambda take: numpy.frombuffer(take(at, end), dtype).reshape(shape)


def _sequence(kind: type, nodes: list[Any]) -> Builder:
    items = [_build(item) for item in nodes]
    return lambda take: kind([item(take) for item in items])


def _dict(node: dict[str, Any]) -> Builder:
    items = [(_build(key), _build(item)) for key, item in node["dict"]]
    return lambda take: {key(take): item(take) for key, item in items}


def _value(node: dict[str, Any]) -> Builder:
    value = node["value"]
    return lambda take: value


_BUILDERS: dict[str, Callable[[dict[str, Any]], Builder]] = {
    "tensor": _tensor,
    "array": _array,
    "dict": _dict,
    "value": _value,
    "list": lambda node: _sequence(list, node["list"]),
    "tuple": lambda node: _sequence(tuple, node["tuple"]),
}


def _unpickled(node: dict[str, Any], payload: memoryview, take: Callable[..., Any]) -> Any:
    """Only for bytes from a process of the same run."""
    at, size = node["object"]
    places = numpy.frombuffer(payload, "<i8", 3 * node["places"][1], node["places"][0]).reshape(-1, 3).tolist()
    table = numpy.frombuffer(payload, "<i8", 2 * node["parts"][1], node["parts"][0]).reshape(-1, 2).tolist()
    return pickle.loads(payload[at : at + size], buffers=_holes(places, table, functools.partial(take, payload)))


def _holes(places: list[Any], table: list[Any], take: Callable[[int, int], Any]) -> Iterator[Hole]:
    parts: dict[int, Part] = {}
    for number, offset, how in places:
        if number >= 0 and number not in parts:
            parts[number] = Part(take(*table[number]), how == PACKED)
        yield parts.get(number), offset
