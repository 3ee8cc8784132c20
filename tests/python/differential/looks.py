"""A value as a nested tuple of its looks: equal for values that a program cannot tell apart."""

import collections
import copyreg
import hashlib
import pathlib
import struct
import tempfile
import types
import weakref

import numpy
import torch

_SIMPLE = (type(None), bool, int, bytes, complex)


def looks_of(value):
    """Type, dtype, shape, strides, bytes, attributes; and which parts are one and the same object."""
    return _Looks().of(value)


def digest(data):
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def without_folder(text):
    """Each run has a temporary folder of its own."""
    return text.replace(tempfile.gettempdir(), "$TMPDIR")


class _Looks:
    def __init__(self):
        self._seen, self._kept = {}, []

    def of(self, value):
        name = f"{type(value).__module__.replace('__mp_main__', '__main__')}.{type(value).__qualname__}"
        if type(value) in _SIMPLE:
            return name, value
        if type(value) is float:
            return name, struct.pack("<d", value)
        if isinstance(value, (str, pathlib.PurePath)):
            return name, without_folder(str(value)), self._attributes(value)
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            return name, value.__qualname__
        if isinstance(value, (tuple, numpy.generic)):
            return name, *self._inside(value)
        if id(value) in self._seen:
            return "the same object as part", self._seen[id(value)]
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        return name, *self._inside(value)

    def _inside(self, value):
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (numpy.ndarray, numpy.generic)):
            return self._array(value)
        if isinstance(value, dict):
            return *((self.of(key), self.of(item)) for key, item in value.items()), self._attributes(value)
        if isinstance(value, (list, tuple, collections.deque)):
            return *map(self.of, value), self._attributes(value)
        if isinstance(value, weakref.ref):
            return (self.of(value()),)
        if hasattr(value, "tobytes") and hasattr(value, "mode") and hasattr(value, "size"):  # an image of PIL
            return value.mode, value.size, digest(value.tobytes())
        return self._attributes(value) or (repr(value),)

    def _tensor(self, value):
        plain = value.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg().contiguous()
        return (
            (str(value.dtype), tuple(value.shape), value.stride(), str(value.device), value.requires_grad),
            (value.is_conj(), value.is_neg(), value.is_leaf, value.is_inference(), self.of(value.grad)),
            digest(plain.flatten().view(torch.uint8).numpy()),
            self._attributes(value),
        )

    def _array(self, value):
        """Of its strides only the order of rows and columns outlives a pickle."""
        is_of_columns = value.flags.f_contiguous and not value.flags.c_contiguous
        kept = tuple(map(self.of, value.ravel())) if value.dtype.hasobject else digest(value.tobytes())
        return value.dtype.descr, value.shape, is_of_columns, kept, self._attributes(value)

    def _attributes(self, value):
        if isinstance(value, numpy.memmap):  # says where its file is, until it is pickled
            return ()
        held = {name: getattr(value, name) for name in copyreg._slotnames(type(value)) if hasattr(value, name)}
        return tuple((name, self.of(item)) for name, item in sorted({**held, **getattr(value, "__dict__", {})}.items()))
