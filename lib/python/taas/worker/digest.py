"""A digest of what a stream has given: equal for equal values, whoever made them and however they lie in memory."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import types
from typing import Any

import numpy
import torch

from ..runtime import native
from ..sending.tensors import bytes_of

_MOST_BYTES = 4 << 20
_PADDED = "gG"  # long doubles have bytes that mean nothing


def chained(chain: int, what: Any) -> int:
    """64 bits over `chain` and `what`; what cannot be pickled, and what comes behind 4 MiB of objects, is left out."""
    file = _Digest(chain.to_bytes(8, "little"))
    with contextlib.suppress(Exception):  # it holds itself, is too much, or refuses
        _ByValue(file).dump(what)
    return file.digest()


class _Digest:
    """A file that keeps nothing."""

    def __init__(self, start: bytes) -> None:
        self._hash = hashlib.blake2b(start, digest_size=8)
        self._left = _MOST_BYTES

    def write(self, data: Any) -> int:
        self._left -= len(data)
        if self._left < 0:
            raise OverflowError
        self._hash.update(data)
        return len(data)

    def digest(self) -> int:
        return int.from_bytes(self._hash.digest(), "little")


class _ByValue(pickle.Pickler):
    """Nobody reads its pickles.

    It does not tell whether two equal parts are one and the same object, which may come of what is cached already. What
    lies in memory is its digest, code its name.
    """

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=5)
        self.fast = True

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, numpy.ndarray):
            return self._array(value)
        if isinstance(value, (torch.UntypedStorage, torch.storage.TypedStorage)):
            untyped = value if isinstance(value, torch.UntypedStorage) else value._untyped_storage
            return int, (native.digest(bytes_of(untyped).numpy()),)
        if isinstance(value, types.FunctionType) or (isinstance(value, type) and value.__module__ != "builtins"):
            return str, (f"{value.__module__}.{value.__qualname__}",)
        return NotImplemented

    def _tensor(self, tensor: torch.Tensor) -> Any:
        if tensor.is_nested:
            return list, (tensor.unbind(),)
        if tensor.layout is not torch.strided or tensor.is_quantized or not tensor.is_cpu:
            return NotImplemented
        with torch.no_grad():
            plain = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
        return tuple, ((str(tensor.dtype), *tensor.shape, native.digest(plain.numpy())),)

    def _array(self, array: numpy.ndarray) -> Any:
        if array.dtype.names or array.dtype.char in _PADDED:
            return list, ((array if array.dtype.names else array.astype(complex)).tolist(),)
        if array.dtype.hasobject:
            return NotImplemented
        return tuple, ((array.dtype.str, *array.shape, native.digest(numpy.ascontiguousarray(array).reshape(-1))),)
