"""A value as a nested tuple of its looks: equal for values that a program cannot tell apart."""

import collections
import copyreg
import dataclasses
import functools
import hashlib
import pathlib
import struct
import tempfile
import types
import weakref
from typing import Any

import numpy
import torch

_SIMPLE = (type(None), bool, int, bytes, complex, torch.dtype, torch.device, torch.Size, range, slice)

_IMMUTABLE = (tuple, frozenset, numpy.generic)


def looks_of(value: Any) -> Any:
    """Type, dtype, shape, strides, bytes, attributes; and which parts are one and the same object."""
    return _Looks().of(value)


def digest(data: Any) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def without_folder(text: str) -> str:
    """Each run has a temporary folder of its own."""
    return text.replace(tempfile.gettempdir(), "$TMPDIR")


def _name(kind: type) -> str:
    return f"{kind.__module__.replace('__mp_main__', '__main__')}.{kind.__qualname__}"


class _Looks:
    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []

    def of(self, value: Any) -> Any:
        if isinstance(value, (str, pathlib.PurePath)):
            return _name(type(value)), without_folder(str(value)), self._attributes(value)
        if type(value) in _SIMPLE:
            return type(value).__name__, value
        if type(value) is float:
            return "float", struct.pack("<d", value)
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            return "named", getattr(value, "__qualname__", repr(value))
        if isinstance(value, _IMMUTABLE):
            return (_name(type(value)), *self._inside(value))
        if id(value) in self._seen:
            return "the same object as part", self._seen[id(value)]
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        return (_name(type(value)), *self._inside(value))

    def _inside(self, value: Any) -> tuple[Any, ...]:
        for kind, inside in self._kinds():
            if isinstance(value, kind):
                return inside(value)
        if hasattr(value, "tobytes") and hasattr(value, "mode") and hasattr(value, "size"):  # an image of PIL
            return value.mode, value.size, digest(value.tobytes())
        return self._object(value)

    def _kinds(self) -> tuple[tuple[Any, Any], ...]:
        return (
            (torch.Tensor, self._tensor),
            (numpy.ma.MaskedArray, self._masked),
            (numpy.ndarray, self._array),
            (numpy.generic, lambda value: (value.dtype.str, value.tobytes())),
            (dict, self._dict),
            ((list, tuple, collections.deque), self._row),
            ((set, frozenset), self._set),
            (bytearray, lambda value: (bytes(value),)),
        )

    def _tensor(self, value: torch.Tensor) -> tuple[Any, ...]:
        head = (str(value.dtype), tuple(value.shape), str(value.layout), str(value.device), value.requires_grad)
        if value.is_nested:
            return (*head, *map(self.of, value.unbind()))
        if value.layout is torch.sparse_coo:
            return (*head, value.is_coalesced(), self.of(value._indices()), self.of(value._values()))
        if value.layout in (torch.sparse_csr, torch.sparse_bsr):
            return (*head, self.of(value.crow_indices()), self.of(value.col_indices()), self.of(value.values()))
        if value.is_quantized:
            return (
                *head,
                value.stride(),
                str(value.qscheme()),
                self.of(value.int_repr()),
                value.q_scale(),
                value.q_zero_point(),
            )
        gradient = self.of(value.grad) if value.is_leaf else None
        return (
            *head,
            value.stride(),
            value.is_conj(),
            value.is_neg(),
            value.is_leaf,
            value.is_inference(),
            gradient,
            _tensor_bytes(value),
            self._attributes(value),
        )

    def _masked(self, value: Any) -> tuple[Any, ...]:
        return self.of(value.data), self.of(numpy.ma.getmaskarray(value)), self.of(value.fill_value)

    def _array(self, value: numpy.ndarray) -> tuple[Any, ...]:
        kept = tuple(map(self.of, value.ravel())) if value.dtype.hasobject else digest(value.tobytes())
        return str(value.dtype), value.dtype.descr, value.shape, _layout(value), kept, self._attributes(value)

    def _dict(self, value: dict) -> tuple[Any, ...]:
        factory = self.of(value.default_factory) if isinstance(value, collections.defaultdict) else None
        return (factory, *((self.of(key), self.of(item)) for key, item in value.items()), self._attributes(value))

    def _row(self, value: Any) -> tuple[Any, ...]:
        return (*map(self.of, value), self._attributes(value))

    def _set(self, value: Any) -> tuple[Any, ...]:
        return tuple(map(self.of, value))  # in the order of iteration: programs see it

    def _object(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, weakref.ref):
            return (self.of(value()),)
        if isinstance(value, functools.partial):
            return self.of(value.func), self.of(value.args), self.of(value.keywords)
        if dataclasses.is_dataclass(value):
            return tuple((field.name, self.of(getattr(value, field.name))) for field in dataclasses.fields(value))
        return self._attributes(value) or (repr(value),)

    def _attributes(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, numpy.memmap):  # says where its file is, until it is pickled
            return ()
        held = {name: getattr(value, name) for name in copyreg._slotnames(type(value)) if hasattr(value, name)}
        return tuple((name, self.of(item)) for name, item in sorted({**held, **getattr(value, "__dict__", {})}.items()))


def _layout(value: numpy.ndarray) -> str:
    """What of an array's strides outlives a pickle."""
    return "columns" if value.flags.f_contiguous and not value.flags.c_contiguous else "rows"


def _tensor_bytes(value: torch.Tensor) -> str:
    if value.is_meta:
        return ""
    with torch.no_grad():
        plain = value.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg().contiguous()
        return digest(plain.view(-1).view(torch.uint8).numpy().tobytes()) if plain.numel() else ""
