"""A batch as a description and buffers: what crosses to the rank.

The description is JSON, one node a value; `at` counts bytes from the start of the payload, where each buffer starts at a
multiple of 64:

    {"tensor": "float32", "shape": [64, 3], "stride": [3, 1], "at": 0}     stride: only where it is not the usual one
    {"array": "<f4", "shape": [64], "at": 768}                             a numpy array
    {"list": [...]} {"tuple": [...]} {"dict": [[key, value], ...]}         keys are nodes as well
    {"named": [at, size], "items": [...]}                                  a namedtuple; its class pickled at `at`
    {"value": 3}                                                           None, bool, int, float or str
    {"bytes": [at, size]} {"pickle": [at, size]}                           bytes; any other object
"""

from __future__ import annotations

import json
from typing import Any

import numpy
import torch

from . import pickling

ALIGNMENT = 64
_PLAIN = (str, int, float, bool, type(None))
_descriptions: dict[Any, str] = {}
_DESCRIPTIONS_KEPT = 256


def aligned(size: int) -> int:
    """The next multiple of 64."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def encode(batch: Any) -> tuple[str, list[Any]]:
    """Description and buffers of `batch`; the buffers support the buffer protocol, are contiguous, and refer to its memory.

    Tensors must be on the CPU; others, and sparse, quantized or subclassed ones, go pickled. Raises Unpicklable.
    """
    leaves = _Leaves()
    form = leaves.form_of(batch)
    description = _descriptions.get(form)
    if description is None:
        description = json.dumps(_Places().node(form), separators=(",", ":"))
        if len(_descriptions) >= _DESCRIPTIONS_KEPT:
            _descriptions.clear()
        _descriptions[form] = description
    return description, leaves.buffers


class _Leaves:
    """Takes a batch apart: `buffers` in order, and a hashable form that says what they are."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []

    def form_of(self, value: Any) -> tuple[Any, ...]:
        kind = type(value)
        if kind is torch.Tensor:
            return self._tensor(value)
        if kind is list or kind is tuple:
            return (kind.__name__, *map(self.form_of, value))
        if kind is dict:
            return ("dict", *((self.form_of(key), self.form_of(item)) for key, item in value.items()))
        if kind in _PLAIN:
            return ("value", kind, repr(value) if kind is float else value)
        if kind is numpy.ndarray and not value.dtype.hasobject and value.dtype.names is None:
            self.buffers.append(_bytes_of(numpy.ascontiguousarray(value)))
            return ("array", value.dtype.str, value.shape, value.nbytes)
        if kind is bytes:
            return ("bytes", self._add(value))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return ("named", self._add(pickling.by_reference(kind)), *map(self.form_of, value))
        return ("pickle", self._add(pickling.by_reference(value)))

    def _add(self, data: bytes) -> int:
        self.buffers.append(data)
        return len(data)

    def _tensor(self, tensor: torch.Tensor) -> tuple[Any, ...]:
        stride = None
        if tensor.layout is not torch.strided or tensor.is_quantized:
            return ("pickle", self._add(pickling.by_reference(tensor)))
        if not tensor.is_contiguous():
            tensor, stride = _laid_out(tensor)
        try:
            self.buffers.append(_bytes_of(_as_array(tensor)))
        except (RuntimeError, TypeError):  # not on the CPU, with a gradient, conjugated: what numpy refuses
            return ("pickle", self._add(pickling.by_reference(tensor)))
        shape = tuple(tensor.shape) if stride is None else stride[0]
        return ("tensor", tensor.dtype, shape, stride and stride[1], tensor.nbytes)


def _laid_out(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
    """The memory that a strided tensor spans, where that is not much more than its values; its values in order otherwise."""
    span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    if tensor.numel() == 0 or span > 2 * tensor.numel():
        return tensor.contiguous(), None
    return tensor.as_strided((span,), (1,)), (tuple(tensor.shape), tensor.stride())


def _as_array(tensor: torch.Tensor) -> numpy.ndarray:
    try:
        return tensor.numpy()
    except TypeError:  # a type that numpy does not know: bfloat16, float8
        return tensor.reshape(-1).view(torch.uint8).numpy()


def _bytes_of(array: numpy.ndarray) -> Any:
    return array.reshape(-1).view(numpy.uint8)


class _Places:
    """Gives every buffer of a form its place, and writes the form as nodes."""

    def __init__(self) -> None:
        self._end = 0

    def node(self, form: tuple[Any, ...]) -> dict[str, Any]:
        kind, rest = form[0], form[1:]
        if kind in ("list", "tuple"):
            return {kind: [self.node(item) for item in rest]}
        if kind == "dict":
            return {kind: [[self.node(key), self.node(item)] for key, item in rest]}
        if kind == "value":
            return {kind: float(rest[1]) if rest[0] is float else rest[1]}
        if kind == "named":
            return {kind: [self._place(rest[0]), rest[0]], "items": [self.node(item) for item in rest[1:]]}
        if kind in ("bytes", "pickle"):
            return {kind: [self._place(rest[0]), rest[0]]}
        node = {kind: str(rest[0]).removeprefix("torch."), "shape": list(rest[1]), "at": self._place(rest[-1])}
        return {**node, "stride": list(rest[2])} if kind == "tensor" and rest[2] else node

    def _place(self, size: int) -> int:
        place = aligned(self._end)
        self._end = place + size
        return place


def joined(buffers: list[Any]) -> bytearray:
    """The payload: each buffer at its place, zeros between."""
    payload = bytearray()
    for buffer in buffers:
        payload += bytes(aligned(len(payload)) - len(payload))
        payload += memoryview(buffer).cast("B")
    return payload
