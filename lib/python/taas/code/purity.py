"""Which samplers may be drawn ahead from a copy: those of which nothing outside the copy can notice it.

A copy shares modules, functions and classes with the original. So a sampler's code may name no globals but constants,
functions that keep to the same, and what draws and computes; and its attributes are numbers, text, tensors, generators,
containers and samplers of these. A dataset is shared too: the copy has a view of it that gives its length and copies of
plain attributes.
"""

from __future__ import annotations

import builtins
import collections
import copy
import dis
import functools
import itertools
import math
import operator
import random
import types
from typing import Any, Iterator

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from .code_objects import with_inner
from .frozen import are_frozen

_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, torch.dtype, numpy.generic, numpy.dtype)
_DATA = (torch.Tensor, numpy.ndarray, torch.Generator, random.Random, numpy.random.Generator, numpy.random.RandomState)
_CONTAINERS = (list, tuple, set, frozenset, dict, collections.deque, collections.Counter, collections.OrderedDict)
_BUILTINS = frozenset(
    """abs all any bool dict divmod enumerate filter float frozenset hasattr int isinstance iter len list map
    max min next pow range reversed round set slice sorted str sum super tuple zip property staticmethod
    __build_class__ object bytes bytearray issubclass hash""".split()
)
_TORCH = frozenset(
    """Generator Tensor arange argsort as_tensor bernoulli bincount bool cat chunk clone cumsum div empty flip
    float float32 float64 floor full from_numpy initial_seed int int32 int64 linspace long multinomial nonzero normal
    ones rand randint randn randperm sort split stack sum tensor topk unique where zeros""".split()
)
_NUMPY_FORBIDDEN = frozenset(
    """save savez savez_compressed savetxt load memmap fromfile tofile seterr seterrcall setbufsize
    set_printoptions lib ctypeslib testing core _core f2py""".split()
)
_PURE_MODULES = (math, random, numpy.random, itertools, operator, collections)
_RANK = frozenset(("get_rank", "get_world_size", "is_available", "is_initialized"))
_OF_EVERY_CLASS = frozenset(
    """__dict__ __weakref__ __doc__ __module__ __annotations__ __orig_bases__ __parameters__
    __abstractmethods__ __qualname__ __slotnames__ __static_attributes__ __firstlineno__ __annotate__ __annotate_func__
    __annotations_cache__ __type_params__ _abc_impl""".split()
)
_NOT_ROOTS = frozenset(("__init__", "__new__", "__del__", "__init_subclass__", "__class_getitem__", "__repr__"))


class Impure(BaseException):
    """A sampler, drawn ahead, has touched what it shares with others.

    Not caught by a sampler's own `except Exception`.
    """


def datasets_of(sampler: Any, dataset: Any) -> list[Any]:
    """The datasets that `sampler` holds.

    Raises Impure with what of it may be noticed outside of a copy that is drawn from.
    """
    inspection = _Inspection(dataset)
    inspection.value(sampler)
    return inspection.datasets


class _Inspection:
    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._seen: dict[int, Any] = {}
        self.datasets: list[Any] = []

    def value(self, value: Any) -> None:
        """Raises Impure for a value that a copy would share, or whose code is not known to keep to itself."""
        if isinstance(value, _PLAIN) or value is self._dataset or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            self._function(value)
            return
        if isinstance(value, DataLoader):
            raise Impure("it holds a loader")
        if type(value) in _DATA:
            return None
        if isinstance(value, Dataset):
            return self.datasets.append(value)
        if type(value) in _CONTAINERS:
            return self._items(value.items() if isinstance(value, dict) else value)
        if isinstance(value, Sampler) or type(value).__module__ not in ("builtins", "torch.utils.data.dataloader"):
            return self._object(value)
        raise Impure(f"it holds a {type(value).__name__}")

    def _items(self, items: Any) -> None:
        if set(map(type, items)) <= {int, float, str, bool}:
            return
        for item in items:
            self._items(item) if type(item) is tuple else self.value(item)

    def _object(self, value: Any) -> None:
        for name in (name for parent in type(value).__mro__ for name in getattr(parent, "__slots__", ())):
            raise Impure(f"{type(value).__name__} has slots ({name})")
        if not hasattr(value, "__dict__"):
            raise Impure(f"it holds a {type(value).__name__}")
        self._class(type(value))
        for attribute in vars(value).values():
            self.value(attribute)

    def _class(self, cls: type) -> None:
        """Methods that can be reached from special ones and set_epoch: by name, wherever they are called."""
        members = collections.ChainMap(*(dict(vars(parent)) for parent in cls.__mro__ if not _is_known(parent)))
        todo = [name for name in members if name == "set_epoch" or name.startswith("__") and name not in _NOT_ROOTS]
        reached: set[str] = set()
        while todo:
            name = todo.pop()
            if name in reached or name in _OF_EVERY_CLASS:
                continue
            reached.add(name)
            for parent in cls.__mro__:
                if not _is_known(parent) and name in vars(parent):
                    todo += [found for found in self._member(vars(parent)[name]) if found in members]

    def _member(self, member: Any) -> set[str]:
        if isinstance(member, staticmethod):
            member = member.__func__
        elif isinstance(member, property):
            member = member.fget
        elif isinstance(member, functools.cached_property):
            member = member.func
        if isinstance(member, types.FunctionType):
            return self._function(member)
        if not isinstance(member, _PLAIN) and not are_frozen([member]):
            raise Impure(f"its class has a {type(member).__name__}")
        return set()

    def _function(self, function: Any) -> set[str]:
        """Checks the names that a function uses; returns those of attributes."""
        if isinstance(function, types.BuiltinFunctionType):
            if function.__module__ in ("builtins", "math", "_operator", "operator") and hasattr(function, "__name__"):
                return set()
            raise Impure(f"it holds {function.__name__}")
        cells = [cell.cell_contents for cell in function.__closure__ or () if not isinstance(cell.cell_contents, type)]
        for shared in [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]:
            self._constant(shared, function.__name__)
        return {name for code in with_inner(function.__code__) for name in self._names(code, function.__globals__)}

    def _constant(self, shared: Any, name: str) -> None:
        if isinstance(shared, types.FunctionType):
            self.value(shared)
        elif type(shared) is tuple:
            for item in shared:
                self._constant(item, name)
        elif not isinstance(shared, _PLAIN):
            raise Impure(f"{name} uses a {type(shared).__name__} that is shared")

    def _names(self, code: types.CodeType, names: dict[str, Any]) -> Iterator[str]:
        module = None
        for step in dis.get_instructions(code):
            if (
                step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME", "STORE_NAME")
                and code.co_name != "<class>"
            ):
                raise Impure(f"{code.co_name} sets or imports {step.argval}")
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                module = self._global(step.argval, names, code.co_name)
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR"):
                if step.argval in ("__class__", "__dict__", "__globals__", "f_globals", "tofile"):
                    raise Impure(f"{code.co_name} uses {step.argval}")
                module = _attribute(module, step.argval, code.co_name) if module else None
                yield step.argval
            elif step.opname != "CACHE":
                if module:
                    raise Impure(f"{code.co_name} hands the module {module.__name__} on")
                module = None

    def _global(self, name: str, names: dict[str, Any], where: str) -> types.ModuleType | None:
        if name not in names:
            if name not in _BUILTINS and not _is_drawing(getattr(builtins, name, None)):
                raise Impure(f"{where} uses {name}")
            return None
        found = names[name]
        if isinstance(found, types.ModuleType):
            return found
        if not (isinstance(found, type) and (_is_known(found) or found in _DATA + _CONTAINERS)) and not _is_drawing(
            found
        ):
            self._constant(found, f"{where}, by the name {name},")
        return None


def _is_known(cls: type) -> bool:
    """Classes of torch's samplers, and those that every object has."""
    return cls is object or cls.__module__ in (
        "torch.utils.data.sampler",
        "torch.utils.data.distributed",
        "typing",
        "abc",
        "builtins",
    )


def _is_drawing(found: Any) -> bool:
    """Functions and classes that draw or compute; instances of them are shared values."""
    if isinstance(found, type) and issubclass(found, Exception):
        return True
    if isinstance(found, types.MethodType) and found.__self__ is not getattr(random, "_inst", None):
        return False
    if not isinstance(found, (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return False
    return getattr(found, "__module__", None) in (
        "math",
        "itertools",
        "random",
        "_operator",
        "operator",
        "collections",
        "_collections",
    )


def _attribute(module: types.ModuleType, name: str, where: str) -> types.ModuleType | None:
    """The module that `module.name` is; None for something harmless in it."""
    found = getattr(module, name, None)
    harmless = (
        module in _PURE_MODULES
        or module is torch
        and name in _TORCH | {"distributed", "utils"}
        or module is torch.distributed
        and name in _RANK
        or module is numpy
        and name not in _NUMPY_FORBIDDEN
        or module.__name__ in ("torch.utils", "torch.utils.data")
        and name in ("data", "Sampler", "RandomSampler")
    )
    if not harmless:
        raise Impure(f"{where} uses {module.__name__}.{name}")
    return found if isinstance(found, types.ModuleType) else None


class DatasetView:
    """What a copy of a sampler sees instead of the dataset: its length, and copies of attributes of plain data."""

    def __init__(self, dataset: Any) -> None:
        object.__setattr__(self, "_view", (dataset, {}))

    def __len__(self) -> int:
        return len(object.__getattribute__(self, "_view")[0])

    def __getattr__(self, name: str) -> Any:
        dataset, copies = object.__getattribute__(self, "_view")
        if name.startswith("__") or name not in getattr(dataset, "__dict__", {}):
            raise Impure(f"it uses {name} of the dataset")
        if name not in copies:
            value = vars(dataset)[name]
            if datasets_of(value, None):
                raise Impure(f"it uses {name} of the dataset")
            copies[name] = copy.deepcopy(value)
        return copies[name]

    def __setattr__(self, name: str, value: Any) -> None:
        raise Impure(f"it sets {name} of the dataset")
