"""Tensors and arrays in a pickle: their memory goes beside it, that of tensors once for all that lie in it.

A tensor that fills its storage is sent as its elements. All others are sent as views of the storage's bytes, which are
sent once.
"""

from __future__ import annotations

import functools
from pickle import PickleBuffer
from typing import Any

import numpy
import torch
from torch._tensor import _rebuild_from_type_v2
from torch._utils import _get_obj_state


class BelongsToGraph(RuntimeError):
    """A tensor with a history."""


class Tensors:
    """What a pickler of protocol 5 does about them.

    `copies_parts`: a tensor that has less than half of its storage goes by its elements, unless what came before has
    brought the storage.
    """

    def __init__(self, copies_parts: bool = False) -> None:
        self._copies_parts = copies_parts
        self._stand_ins: dict[int, torch.Tensor] = {}
        """What is pickled of each storage: pickle sends an object once."""

    def reduced(self, value: Any) -> Any:
        """For reducer_override. Raises BelongsToGraph."""
        kind = type(value)
        if isinstance(value, torch.Tensor):
            return self._tensor(kind, value)
        if kind is numpy.ndarray:
            return _array(value)
        if kind is torch.UntypedStorage:
            self.meet(value)
            on_cpu = value.device.type == "cpu"
            return (torch.Tensor.untyped_storage, (self._stand_in(value),)) if on_cpu else NotImplemented
        if kind is torch.storage.TypedStorage:
            return _typed_storage, (value._untyped_storage, value.dtype)
        return NotImplemented

    def meet(self, storage: torch.UntypedStorage) -> None:
        """Called for each that goes along; may raise."""

    def _tensor(self, kind: type, tensor: torch.Tensor) -> Any:
        if tensor.requires_grad and not tensor.is_leaf:
            raise BelongsToGraph(
                "a tensor of an autograd graph stays in the process that made it: call detach() on it in the dataset "
                "or in collate_fn"
            )
        if is_plain(tensor):
            return self._elements_or_view(tensor)
        if _is_in_memory(tensor) and _is_pickled_as_tensor(kind):
            with torch._C.DisableTorchFunctionSubclass():
                plain = tensor.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg()
            return _made_as, (kind, plain, tensor.requires_grad, _get_obj_state(tensor))
        return NotImplemented

    def _elements_or_view(self, tensor: torch.Tensor) -> Any:
        if not tensor.numel():
            return _empty, (tensor.dtype, tuple(tensor.shape), tensor.stride())
        storage = tensor.untyped_storage()
        if storage._cdata not in self._stand_ins:
            self.meet(storage)
            if self._copies_parts and (once := _without_repetition(tensor)) is not tensor:
                return torch.Tensor.expand, (once, tuple(tensor.shape))
            if self._copies_parts and 2 * tensor.nbytes < storage.nbytes():
                return _sent(tensor) if _is_in_order(tensor) else self._elements_or_view(tensor.clone())
            if _fills(tensor, storage):
                self._stand_ins[storage._cdata] = tensor
        stand_in = self._stand_in(storage)
        if stand_in is tensor:
            return _sent(tensor)
        return _view, (stand_in, tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())

    def _stand_in(self, storage: torch.UntypedStorage) -> torch.Tensor:
        """Its bytes, where nothing stands for it yet."""
        if storage._cdata not in self._stand_ins:
            self._stand_ins[storage._cdata] = bytes_of(storage)
        return self._stand_ins[storage._cdata]


def _without_repetition(tensor: torch.Tensor) -> torch.Tensor:
    """What expand() has made it of."""
    repeated = [step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape)]
    return tensor[tuple(slice(1 if each else None) for each in repeated)] if any(repeated) else tensor


def is_simple(tensor: torch.Tensor) -> bool:
    """True for a plain one that has all of its storage."""
    return is_plain(tensor) and _fills(tensor, tensor.untyped_storage())


def elements_of(tensor: torch.Tensor) -> Any:
    """A buffer: what lies in memory of one whose elements are in order."""
    try:
        return tensor.numpy()
    except TypeError:  # a dtype that numpy has not: bfloat16, float8
        return tensor.reshape(-1).view(torch.uint8).numpy()


def bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    """A uint8 tensor that lies there. It is on the CPU."""
    return torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)  # type: ignore[call-overload]


def _sent(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor_of, (PickleBuffer(elements_of(tensor)), _NAMES[tensor.dtype], *tensor.shape)


def tensor_of(memory: Any, dtype: str, *shape: int) -> torch.Tensor:
    """A buffer that came inside the pickle is copied, so that the storage can be resized."""
    made = torch.frombuffer(memory, dtype=getattr(torch, dtype))
    if len(shape) != 1:
        made = made.view(shape)
    return made.clone() if type(memory) is bytearray else made


_NAMES = {dtype: name for name, dtype in vars(torch).items() if isinstance(dtype, torch.dtype)}
"""A name is pickled in a tenth of the time."""


def _view(stand_in: torch.Tensor, dtype: torch.dtype, *place: Any) -> torch.Tensor:
    """`place`: offset, shape and strides, in elements."""
    storage = stand_in.untyped_storage()
    return torch.empty(0, dtype=dtype, device="cpu").set_(storage, *place)  # type: ignore[call-overload]


def _empty(dtype: torch.dtype, shape: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
    return torch.empty_strided(shape, stride, dtype=dtype, device="cpu")


def _made_as(kind: type, plain: torch.Tensor, requires_grad: bool, state: Any) -> torch.Tensor:
    """A subclass, or what has attributes, or a leaf."""
    return _rebuild_from_type_v2(lambda: plain, kind, (), state).requires_grad_(requires_grad)


def _typed_storage(untyped: torch.UntypedStorage, dtype: torch.dtype) -> Any:
    """As torch's pickles of tensors want it."""
    return torch.storage.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def _array(array: numpy.ndarray) -> Any:
    """As multiprocessing sends it: one that can be written to, in the order of C or of Fortran."""
    flags = array.flags
    if array.dtype.hasobject or (flags.writeable and (flags.c_contiguous or flags.f_contiguous)):
        return NotImplemented
    return numpy.array(array, order="F" if flags.fnc else "C").__reduce_ex__(5)


def is_plain(value: Any) -> bool:
    """True for a torch.Tensor that is nothing but values that lie in memory."""
    return (
        type(value) is torch.Tensor
        and _is_in_memory(value)
        and not (value.requires_grad or value.is_conj() or value.is_neg())
        and not vars(value)
    )


def _is_in_memory(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.is_cpu and not (tensor.is_quantized or tensor.is_nested)


def _fills(tensor: torch.Tensor, storage: torch.UntypedStorage) -> bool:
    return tensor.nbytes == storage.nbytes() > 0 and _is_in_order(tensor)


def _is_in_order(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and tensor.stride() == _usual_stride(tensor.shape)


@functools.lru_cache(maxsize=1024)
def _usual_stride(shape: torch.Size) -> tuple[int, ...]:
    """Of dimensions of size 1 there are others, by which torch knows channels_last."""
    return torch.empty(shape, device="meta").stride()


def _is_pickled_as_tensor(kind: Any) -> bool:
    """True for a class whose objects are elements in memory, and attributes."""
    return (
        kind.__reduce_ex__ is torch.Tensor.__reduce_ex__
        and kind.__reduce__ is torch.Tensor.__reduce__
        and kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    )
