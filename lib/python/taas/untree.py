"""A description and a payload as the batch again: tensors and arrays are views of the payload."""

from __future__ import annotations

import functools
import json
from typing import Any, Callable

import numpy
import torch

from . import pickling

Builder = Callable[[Any], Any]


def decode(description: str, payload: Any) -> Any:
    """The batch. `payload` is a writable buffer that lives as long as one of its tensors does. Inverse of tree.encode."""
    return _builder_of(description)(payload)


@functools.lru_cache(maxsize=256)
def _builder_of(description: str) -> Builder:
    """What the description means, worked out once: batches of an epoch mostly look alike."""
    return _build(json.loads(description))


def _build(node: dict[str, Any]) -> Builder:
    kind = next(iter(node))
    return _BUILDERS[kind](node)


def _tensor(node: dict[str, Any]) -> Builder:
    dtype, shape, at = getattr(torch, node["tensor"]), tuple(node["shape"]), node["at"]
    stride = node.get("stride")
    count = _product(shape)
    if stride:
        count = 1 + sum((size - 1) * step for size, step in zip(shape, stride))
    if count == 0:
        return lambda payload: torch.empty(shape, dtype=dtype)
    frombuffer = torch.frombuffer
    if stride:
        return lambda payload: frombuffer(payload, dtype=dtype, count=count, offset=at).as_strided(shape, stride)
    if len(shape) == 1:
        return lambda payload: frombuffer(payload, dtype=dtype, count=count, offset=at)
    return lambda payload: frombuffer(payload, dtype=dtype, count=count, offset=at).view(shape)


def _array(node: dict[str, Any]) -> Builder:
    dtype, shape, at = numpy.dtype(node["array"]), tuple(node["shape"]), node["at"]
    count = _product(shape)
    if count == 0 or dtype.itemsize == 0:
        return lambda payload: numpy.empty(shape, dtype)
    return lambda payload: numpy.frombuffer(payload, dtype, count, at).reshape(shape)


def _product(shape: tuple[int, ...]) -> int:
    return functools.reduce(lambda left, right: left * right, shape, 1)


def _sequence(kind: type, nodes: list[Any]) -> Builder:
    items = [_build(item) for item in nodes]
    return lambda payload: kind([item(payload) for item in items])


def _dict(node: dict[str, Any]) -> Builder:
    items = [(_build(key), _build(item)) for key, item in node["dict"]]
    return lambda payload: {key(payload): item(payload) for key, item in items}


def _named(node: dict[str, Any]) -> Builder:
    (at, size), items = node["named"], [_build(item) for item in node["items"]]
    return lambda payload: pickling.load(bytes(payload[at:at + size]))._make([item(payload) for item in items])


def _value(node: dict[str, Any]) -> Builder:
    value = node["value"]
    return lambda payload: value


def _bytes(node: dict[str, Any]) -> Builder:
    at, size = node["bytes"]
    return lambda payload: bytes(payload[at:at + size])


def _pickle(node: dict[str, Any]) -> Builder:
    at, size = node["pickle"]
    return lambda payload: pickling.load(bytes(payload[at:at + size]))


_BUILDERS: dict[str, Callable[[dict[str, Any]], Builder]] = {
    "tensor": _tensor, "array": _array, "dict": _dict, "named": _named, "value": _value, "bytes": _bytes, "pickle": _pickle,
    "list": lambda node: _sequence(list, node["list"]), "tuple": lambda node: _sequence(tuple, node["tuple"]),
}
