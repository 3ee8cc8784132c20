"""Tensors in a pickle: their memory goes beside it, once for all that lie in it.

A tensor that fills its storage is its elements. Others are views of the storage's bytes, which are a tensor themselves.
"""

from __future__ import annotations

import functools
from pickle import PickleBuffer
from typing import Any, Callable

import torch
from torch._tensor import _rebuild_from_type_v2
from torch._utils import _get_obj_state


_NAMES = {dtype: name for name, dtype in vars(torch).items() if isinstance(dtype, torch.dtype)}


class OfAGraph(RuntimeError):
    """A tensor with a history."""


class Tensors:
    """What a pickler of protocol 5 does about tensors.

    `copies_parts`: a tensor that has less than half of its storage goes by its elements, and shares memory with
    nobody any more. `meet` is called for each storage that goes along; it may raise.
    """

    def __init__(
        self, copies_parts: bool = False, meet: Callable[[torch.UntypedStorage], None] = lambda storage: None
    ) -> None:
        self._copies_parts = copies_parts
        self._meet = meet
        self._wholes: dict[int, torch.Tensor] = {}

    def reduced(self, value: Any) -> Any:
        """For reducer_override. Raises OfAGraph."""
        kind = type(value)
        if kind is torch.Tensor:
            return self._tensor(value)
        if kind is torch.UntypedStorage:
            self._meet(value)
            return (storage_of, (self._whole(value),)) if value.device.type == "cpu" else NotImplemented
        if kind is torch.storage.TypedStorage:
            return _typed_storage, (value._untyped_storage, value.dtype)
        return self._like_a_tensor(value) if isinstance(value, torch.Tensor) else NotImplemented

    def _tensor(self, tensor: torch.Tensor) -> Any:
        if tensor.requires_grad:
            return _leaf, (_without_gradient(tensor),)
        if vars(tensor) or not _is_plain(tensor):
            return self._like_a_tensor(tensor)
        if not tensor.numel():
            return _empty, (tensor.dtype, tuple(tensor.shape), tensor.stride())
        storage = tensor.untyped_storage()
        whole = self._wholes.get(storage._cdata)
        if whole is None:
            self._meet(storage)
            if self._copies_parts and 2 * tensor.nbytes < storage.nbytes():
                return _elements(tensor) if _is_in_order(tensor) else (_itself, (tensor.clone(),))
            if is_whole(tensor):
                whole = self._wholes[storage._cdata] = tensor
            else:
                whole = self._whole(storage)
        if whole is tensor:
            return _elements(tensor)
        return _view, (whole, tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())

    def _whole(self, storage: torch.UntypedStorage) -> torch.Tensor:
        """What is pickled of it, always the same: pickle sends an object once."""
        return self._wholes.setdefault(storage._cdata, bytes_of(storage))

    def _like_a_tensor(self, value: Any) -> Any:
        """A subclass, or what has attributes, as torch does it; NotImplemented where the class has a way of its own."""
        kind = type(value)
        if not (_is_pickled_as_tensor(kind) and _is_plain(value)) or value.requires_grad:
            return NotImplemented
        with torch._C.DisableTorchFunctionSubclass():
            plain = value.detach().as_subclass(torch.Tensor)
        return _rebuild_from_type_v2, (_itself, kind, (plain,), _get_obj_state(value))


def bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    """A uint8 tensor that lies there. It is on the CPU."""
    return torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)  # type: ignore[call-overload]


def storage_of(whole: torch.Tensor) -> torch.UntypedStorage:
    """In the other process."""
    return whole.untyped_storage()


def is_whole(tensor: torch.Tensor) -> bool:
    """True for elements in memory of the CPU that are all of their storage, and all that there is to the tensor."""
    return (
        _is_plain(tensor)
        and tensor.nbytes == tensor.untyped_storage().nbytes() > 0
        and _is_in_order(tensor)
        and not tensor.requires_grad
        and not vars(tensor)
    )


def memory_of(tensor: torch.Tensor) -> Any:
    """The elements of one that is in order, as a buffer."""
    try:
        return tensor.numpy()
    except TypeError:  # a dtype that numpy has not: bfloat16, float8
        return tensor.reshape(-1).view(torch.uint8).numpy()


def _elements(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor_of, (PickleBuffer(memory_of(tensor)), _NAMES[tensor.dtype], *tensor.shape)


def tensor_of(memory: Any, dtype: str, *shape: int) -> torch.Tensor:
    """Its elements lie in `memory`, one behind the other. What came in the pickle is in memory that can be resized."""
    made = torch.frombuffer(memory, dtype=getattr(torch, dtype))
    if len(shape) != 1:
        made = made.view(shape)
    return made.clone() if type(memory) is bytearray else made


def _view(whole: torch.Tensor, dtype: torch.dtype, *place: Any) -> torch.Tensor:
    """`place`: offset, shape and strides, in elements."""
    return torch.empty(0, dtype=dtype, device="cpu").set_(whole.untyped_storage(), *place)  # type: ignore[call-overload]


def _empty(dtype: torch.dtype, shape: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
    return torch.empty_strided(shape, stride, dtype=dtype, device="cpu")


def _without_gradient(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_leaf:
        return tensor.detach()
    raise OfAGraph(
        "a tensor belongs to an autograd graph, which stays in the process that made it: call detach() on it in the "
        "dataset or in collate_fn"
    )


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.requires_grad_()


def _itself(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _typed_storage(untyped: torch.UntypedStorage, dtype: torch.dtype) -> Any:
    """As torch's pickles of tensors want it."""
    return torch.storage.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def _is_in_order(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and tensor.stride() == _usual_stride(tensor.shape)


@functools.lru_cache(maxsize=1024)
def _usual_stride(shape: torch.Size) -> tuple[int, ...]:
    """Of dimensions of size 1 there are others, by which torch knows channels_last."""
    return torch.empty(shape, device="meta").stride()


def _is_plain(tensor: torch.Tensor) -> bool:
    """True for elements in memory of the CPU, and nothing else."""
    return (
        tensor.layout is torch.strided
        and tensor.is_cpu
        and not (tensor.is_quantized or tensor.is_nested or tensor.is_conj() or tensor.is_neg())
    )


def _is_pickled_as_tensor(kind: Any) -> bool:
    """True for a class whose objects are elements in memory, and attributes."""
    return (
        kind.__reduce_ex__ is torch.Tensor.__reduce_ex__
        and kind.__reduce__ is torch.Tensor.__reduce__
        and kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    )
