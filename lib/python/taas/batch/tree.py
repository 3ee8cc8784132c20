"""A batch as a description and buffers: what crosses to the rank.

The description is JSON; `at` counts bytes from the start of the payload, where each buffer starts at a multiple of 64.
A batch of few tensors and values is described itself, one node a value:

    {"tensor": "float32", "shape": [64, 3], "at": 0}                 a tensor as torch lays it out usually
    {"array": "<f4", "shape": [64], "at": 768}                       a numpy array, the same
    {"list": [...]} {"tuple": [...]} {"dict": [[key, value], ...]}   keys are nodes as well
    {"value": 3}                                                     None, bool, int, float or str

Every other batch, with long lists, objects, or tensors of another layout or that share memory, is pickled:

    {"object": [at, size], "places": [at, count], "parts": [at, count]}    see batch_pickle.py
"""

from __future__ import annotations

import functools
import json
import math
from typing import Any

import numpy
import torch

from .batch_pickle import KEEPS_READ_ONLY, pickled
from .bounded import Bounded
from .layout import aligned, spans_of

_MOST_NODES = 128
_LONGEST_TEXT = 200
_INTEGERS = range(-(1 << 63), 1 << 63)
_DESCRIPTIONS_BYTES = 4 << 20
_BYTES_OF_A_NODE = 200  # about: a form is made of tuples
_descriptions = Bounded(_DESCRIPTIONS_BYTES)


def encode(batch: Any) -> tuple[str, list[Any]]:
    """Description and buffers of `batch`.

    The buffers support the buffer protocol, are contiguous, and refer to its memory.

    What the rank gets is what torch's own workers would have sent. They lose something: attributes of tensors,
    conjugate bits, the layout of numpy arrays. Raises Unpicklable.
    """
    simple = _Simple()
    try:
        form = simple.form_of(batch)
    except _NotSimple:
        parts = pickled(batch)
        description = json.dumps(_described_object(parts.buffers, parts.places, parts.parts), separators=(",", ":"))
        return description, parts.buffers
    return _description_of(form), simple.buffers


def _description_of(form: tuple[Any, ...]) -> str:
    description = _descriptions.get(form)
    if description is None:
        places = _Places()
        description = json.dumps(places.node(form), separators=(",", ":"))
        _descriptions.add(form, description, len(description) + places.nodes * _BYTES_OF_A_NODE)
    return description


def _described_object(buffers: list[Any], places: int, parts: int) -> dict[str, Any]:
    """The last three buffers are the places, the parts, and the pickle."""
    *_, (at_places, _), (at_parts, _), (start, end) = spans_of(buffers)
    return {"object": [start, end - start], "places": [at_places, places], "parts": [at_parts, parts]}


class _NotSimple(Exception):
    """The batch is to be pickled."""


class _Simple:
    """Takes a batch apart: `buffers` in order, and a hashable form that says what they are. Raises _NotSimple."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []
        self._nodes_left = _MOST_NODES
        self._seen: set[Any] = set()
        self._first: torch.Tensor | None = None
        self._has_met_first = False

    def form_of(self, value: Any) -> tuple[Any, ...]:
        self._nodes_left -= 1
        kind = type(value)
        if kind is torch.Tensor:
            return self._tensor(value)
        if kind in _CONTAINERS and len(value) <= self._nodes_left:
            return self._container(kind, value)
        if _is_short(kind, value):
            return ("value", kind, repr(value) if kind is float else value)
        if kind is numpy.ndarray:
            return self._array(value)
        raise _NotSimple

    def _container(self, kind: type, value: Any) -> tuple[Any, ...]:
        if kind is not tuple:
            self._meet(id(value))
        if kind is dict:
            return ("dict", *((self.form_of(key), self.form_of(item)) for key, item in value.items()))
        return (kind.__name__, *map(self.form_of, value))

    def _meet(self, key: int) -> None:
        """What is there twice, or shares its memory, does so in the rank as well: the pickle's work."""
        if key in self._seen:
            raise _NotSimple
        self._seen.add(key)

    def _meet_storage(self, tensor: torch.Tensor) -> None:
        """The first tensor's is looked at when there is a second one."""
        if self._first is None:
            self._first = tensor
            return
        if not self._has_met_first:
            self._has_met_first = True
            self._meet(-_storage_of(self._first))
        self._meet(-_storage_of(tensor))

    def _tensor(self, tensor: torch.Tensor) -> tuple[Any, ...]:
        self._meet(id(tensor))
        array = _as_array(tensor)
        if not _is_laid_out_usually(tensor):
            raise _NotSimple
        if array.size:
            self._meet_storage(tensor)
        self.buffers.append(_bytes_of(array))
        return ("tensor", tensor.dtype, tuple(tensor.shape), array.nbytes)

    def _array(self, array: numpy.ndarray) -> tuple[Any, ...]:
        self._meet(id(array))
        name = None if array.dtype.metadata or not array.size else _name_of(array.dtype)
        if name is None or not array.flags.c_contiguous or not array.flags.writeable and KEEPS_READ_ONLY:
            raise _NotSimple
        self.buffers.append(_bytes_of(array))
        return ("array", name, array.shape, array.nbytes)


_CONTAINERS = frozenset((list, tuple, dict))


def _is_short(kind: type, value: Any) -> bool:
    """True for a value that JSON keeps to the bit, and that is not long."""
    if kind is int:
        return value in _INTEGERS
    if kind is float:
        return not math.isnan(value)  # it has 52 bits that may mean something
    return kind is bool or value is None or kind is str and len(value) <= _LONGEST_TEXT


def _storage_of(tensor: torch.Tensor) -> int:
    """The address of its storage, without an object for the storage, which would cost as much as all the rest."""
    return tensor.data_ptr() - int(tensor.storage_offset()) * tensor.element_size()


def _is_plain(tensor: torch.Tensor) -> bool:
    """True for a tensor whose values are what lies in the memory of this machine, and all that there is to it."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.requires_grad or not tensor.is_cpu:
        return False
    return not (tensor.is_neg() or tensor.is_quantized or tensor.is_conj())


def _is_laid_out_usually(tensor: torch.Tensor) -> bool:
    return tensor.stride() == _usual_stride(tensor.shape)


@functools.lru_cache(maxsize=1024)
def _usual_stride(shape: torch.Size) -> tuple[int, ...]:
    return torch.empty(shape, device="meta").stride()


@functools.lru_cache(maxsize=256)
def _name_of(dtype: numpy.dtype) -> str | None:
    """None for a type that its name does not make again: structures, types of other libraries."""
    return dtype.str if dtype.kind in "biufcSUMm" and dtype.isnative and numpy.dtype(dtype.str) == dtype else None


def _as_array(tensor: torch.Tensor) -> numpy.ndarray:
    """Its values. Raises _NotSimple for what is not plain: torch refuses to give numpy any of that."""
    try:
        return tensor.numpy()
    except RuntimeError:  # has a gradient, or is to be conjugated or negated
        raise _NotSimple from None
    except TypeError:  # another layout or device, or a type that numpy does not know: bfloat16, float8
        if not (_is_plain(tensor) and _is_laid_out_usually(tensor)):
            raise _NotSimple from None
        return tensor.reshape(-1).view(torch.uint8).numpy()


def _bytes_of(array: numpy.ndarray) -> Any:
    if not array.size:
        return b""
    return (array if array.ndim == 1 else array.reshape(-1)).view(numpy.uint8)


class _Places:
    """Gives every buffer of a form its place, and writes the form as nodes."""

    def __init__(self) -> None:
        self._end = 0
        self.nodes = 0

    def node(self, form: tuple[Any, ...]) -> dict[str, Any]:
        self.nodes += 1
        kind, rest = form[0], form[1:]
        if kind in ("list", "tuple"):
            return {kind: [self.node(item) for item in rest]}
        if kind == "dict":
            return {kind: [[self.node(key), self.node(item)] for key, item in rest]}
        if kind == "value":
            return {kind: float(rest[1]) if rest[0] is float else rest[1]}
        return {kind: str(rest[0]).removeprefix("torch."), "shape": list(rest[1]), "at": self._place(rest[-1])}

    def _place(self, size: int) -> int:
        place = aligned(self._end)
        self._end = place + size
        return place
