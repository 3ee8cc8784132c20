"""Places in which a program can keep a number that its samples are made of. Each has `read` and `set`."""

import array
import collections
import contextvars
import ctypes
import dataclasses
import decimal
import functools
import io
import itertools
import locale
import logging
import mmap
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import threading
import types
import warnings
import weakref
from typing import Any

import numpy
import torch

NUMBER = 0
CONTEXT = contextvars.ContextVar("NUMBER", default=0)
THREAD = threading.local()
SETTINGS = types.SimpleNamespace(number=0)


class Attribute:
    def __init__(self) -> None:
        self.value = 0

    def read(self) -> int:
        return self.value

    def set(self, value: int) -> None:
        self.value = value


class Item:
    """Of a container that is made by `container`."""

    def __init__(self, container: Any, key: Any = 0) -> None:
        self.container, self.key = container, key

    def read(self) -> int:
        return int(self.container[self.key])

    def set(self, value: int) -> None:
        self.container[self.key] = value


class View(Item):
    """Of a part of another array, which is the only one that is kept beside it."""

    def __init__(self) -> None:
        self.whole = numpy.zeros((4, 3), numpy.int64)
        super().__init__(self.whole[2], 1)


class TensorView(Item):
    def __init__(self) -> None:
        self.whole = torch.zeros(4, 3, dtype=torch.int64)
        super().__init__(self.whole[2], 1)


class OfTheClass:
    value = 0

    def read(self) -> int:
        return type(self).value

    def set(self, value: int) -> None:
        type(self).value = value


class Global:
    def read(self) -> int:
        return NUMBER

    def set(self, value: int) -> None:
        global NUMBER
        NUMBER = value


class OfAModule:
    def read(self) -> int:
        return SETTINGS.number

    def set(self, value: int) -> None:
        SETTINGS.number = value


class OfAnotherModule:
    def read(self) -> int:
        return getattr(numpy, "a_number_of_ours", 0)

    def set(self, value: int) -> None:
        numpy.a_number_of_ours = value


class ModuleMadeByTheProgram:
    def read(self) -> int:
        return getattr(sys.modules.get("made_by_the_program"), "number", 0)

    def set(self, value: int) -> None:
        sys.modules.setdefault("made_by_the_program", types.ModuleType("made_by_the_program")).number = value


class Closure:
    def __init__(self) -> None:
        number = 0

        def read() -> int:
            return number

        def change(value: int) -> None:
            nonlocal number
            number = value

        self.read, self.set = read, change


class DefaultArgument:
    def __init__(self) -> None:
        def read(value: int = 0) -> int:
            return value

        self.read = read

    def set(self, value: int) -> None:
        self.read.__defaults__ = (value,)


class OfAFunction:
    def __init__(self) -> None:
        def function() -> int:
            return function.number

        function.number = 0
        self.function = function

    def read(self) -> int:
        return self.function()

    def set(self, value: int) -> None:
        self.function.number = value


class Partial:
    def __init__(self) -> None:
        self.set(0)

    def read(self) -> int:
        return self.made()

    def set(self, value: int) -> None:
        self.made = functools.partial(int, value)


class Slots:
    __slots__ = ("value", "__weakref__")

    def __init__(self) -> None:
        self.value = 0

    read, set = Attribute.read, Attribute.set


@dataclasses.dataclass(slots=True)
class DataSlots:
    value: int = 0

    def read(self) -> int:
        return self.value

    def set(self, value: int) -> None:
        self.value = value


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: int = 0

    def read(self) -> int:
        return self.value

    def set(self, value: int) -> None:
        object.__setattr__(self, "value", value)


class Property:
    def __init__(self) -> None:
        self.__dict__["hidden"] = 0

    @property
    def value(self) -> int:
        return self.__dict__["hidden"]

    def read(self) -> int:
        return self.value

    def set(self, value: int) -> None:
        self.__dict__["hidden"] = value


class Remembered:
    """A worker's first look is remembered by a cache of the worker."""

    def __init__(self) -> None:
        self.value = 0
        self.look = functools.cache(self._look)

    def _look(self, index: int) -> int:
        return self.value

    def read(self) -> int:
        return self.look(0)

    def set(self, value: int) -> None:
        self.value = value


class Environment:
    def read(self) -> int:
        return int(os.environ.get("A_NUMBER", 0))

    def set(self, value: int) -> None:
        os.environ["A_NUMBER"] = str(value)


class Context:
    def read(self) -> int:
        return CONTEXT.get()

    def set(self, value: int) -> None:
        CONTEXT.set(value)


class OfTheThread:
    def read(self) -> int:
        return getattr(THREAD, "number", 0)

    def set(self, value: int) -> None:
        THREAD.number = value


class LevelOfALog:
    def read(self) -> int:
        return logging.getLogger("a_log_of_ours").level

    def set(self, value: int) -> None:
        logging.getLogger("a_log_of_ours").setLevel(value)


class Precision:
    def read(self) -> int:
        return decimal.getcontext().prec

    def set(self, value: int) -> None:
        decimal.getcontext().prec = value + 1


class Filters:
    def read(self) -> int:
        return sum(each[2] is BytesWarning for each in warnings.filters)

    def set(self, value: int) -> None:
        for _ in range(value % 3):
            warnings.simplefilter("ignore", BytesWarning, append=True)


class Limit:
    def read(self) -> int:
        return sys.getrecursionlimit()

    def set(self, value: int) -> None:
        sys.setrecursionlimit(2000 + value)


class Umask:
    def read(self) -> int:
        mask = os.umask(0)
        os.umask(mask)
        return mask

    def set(self, value: int) -> None:
        os.umask(0o20 + value % 8)


class DefaultDtype:
    def read(self) -> int:
        return torch.get_default_dtype().itemsize

    def set(self, value: int) -> None:
        torch.set_default_dtype(torch.float64 if value % 2 else torch.float32)


class Folder:
    def read(self) -> int:
        return int(pathlib.Path.cwd().name.rpartition("number-")[2] or 0) if "number-" in os.getcwd() else 0

    def set(self, value: int) -> None:
        folder = pathlib.Path(tempfile.gettempdir()) / f"number-{value}"
        folder.mkdir(exist_ok=True)
        os.chdir(folder)


class Locale:
    def read(self) -> int:
        return len(locale.setlocale(locale.LC_TIME))

    def set(self, value: int) -> None:
        locale.setlocale(locale.LC_TIME, "C.UTF-8" if value % 2 else "C")


class Draws:
    """Of a generator that the dataset holds: each look moves it on."""

    def __init__(self) -> None:
        self.random = random.Random(0)

    def read(self) -> int:
        return self.random.randrange(1000)

    def set(self, value: int) -> None:
        self.random.seed(value)


class DrawsOfNumpy(Draws):
    def __init__(self) -> None:
        self.set(0)

    def read(self) -> int:
        return int(self.random.integers(1000))

    def set(self, value: int) -> None:
        self.random = numpy.random.default_rng(value)


class DrawsOfTorch(Draws):
    def __init__(self) -> None:
        self.random = torch.Generator()
        self.set(0)

    def read(self) -> int:
        return int(torch.randint(1000, (), generator=self.random))

    def set(self, value: int) -> None:
        self.random.manual_seed(value)


class Count:
    def __init__(self) -> None:
        self.set(0)

    def read(self) -> int:
        return next(self.count)

    def set(self, value: int) -> None:
        self.count = itertools.count(value)


class Generator:
    def __init__(self) -> None:
        self.set(0)

    def read(self) -> int:
        return next(self.numbers)

    def set(self, value: int) -> None:
        self.numbers = (value + number for number in itertools.count())


class Text:
    def __init__(self) -> None:
        self.text = io.StringIO("0")

    def read(self) -> int:
        return int(self.text.getvalue())

    def set(self, value: int) -> None:
        self.text = io.StringIO(str(value))


class ModuleOfTorch(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros((), dtype=torch.int64))

    def read(self) -> int:
        return int(self.value)

    def set(self, value: int) -> None:
        self.value.fill_(value)


class Parameter:
    def __init__(self) -> None:
        self.parameter = torch.nn.Parameter(torch.zeros(2))

    def read(self) -> int:
        return int(self.parameter[0])

    def set(self, value: int) -> None:
        with torch.no_grad():
            self.parameter[0] = value


class Weak:
    """What a module holds, and the dataset only knows."""

    held = Attribute()

    def __init__(self) -> None:
        self.known = weakref.ref(type(self).held)

    def read(self) -> int:
        return self.known().value

    def set(self, value: int) -> None:
        self.known().value = value


class OfItsKey:
    """A number that is kept under the identity of an object."""

    def __init__(self) -> None:
        self.key = object()
        self.numbers = {self.key: 0}

    def read(self) -> int:
        return self.numbers[self.key]

    def set(self, value: int) -> None:
        self.numbers[self.key] = value


class Single:
    """There is one, whoever makes it."""

    _only = None

    def __new__(cls) -> "Single":
        cls._only = cls._only or super().__new__(cls)
        return cls._only

    def read(self) -> int:
        return getattr(type(self)._only, "value", 0)

    def set(self, value: int) -> None:
        type(self)._only.value = value


class File:
    def __init__(self) -> None:
        self.path = pathlib.Path(tempfile.gettempdir()) / "a-number"

    def read(self) -> int:
        return int(self.path.read_text()) if self.path.exists() else 0

    def set(self, value: int) -> None:
        self.path.write_text(str(value))


class MappedFile(Item):
    """In memory that is the file's: what one process writes, all read."""

    def __init__(self) -> None:
        path = pathlib.Path(tempfile.gettempdir()) / "numbers"
        path.write_bytes(bytes(64))
        super().__init__(numpy.memmap(path, numpy.int64, "r+"), 3)


def shared_by_forks() -> Any:
    return numpy.frombuffer(mmap.mmap(-1, 4096), numpy.int64)


class Value:
    def __init__(self) -> None:
        self.value = multiprocessing.Value("q")

    def read(self) -> int:
        return self.value.value

    def set(self, value: int) -> None:
        self.value.value = value


class Managed:
    def __init__(self) -> None:
        self.manager = multiprocessing.Manager()
        self.numbers = self.manager.dict({"number": 0})

    def read(self) -> int:
        return self.numbers["number"]

    def set(self, value: int) -> None:
        self.numbers["number"] = value


class Locked:
    def __init__(self) -> None:
        self.lock = multiprocessing.Lock()
        self.value = 0

    def read(self) -> int:
        with self.lock:
            return self.value

    def set(self, value: int) -> None:
        with self.lock:
            self.value = value


class ThreadLocked(Locked):
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.value = 0


OF_A_PROCESS = {
    "an attribute": Attribute,
    "an item of a list": lambda: Item([0]),
    "an item of a dict": lambda: Item({"a": 0}, "a"),
    "an item of a deque": lambda: Item(collections.deque([1, 0]), 1),
    "an item of a defaultdict": lambda: Item(collections.defaultdict(int), 7),
    "an element of an array": lambda: Item(numpy.zeros(3, numpy.int64), 1),
    "an element of a tensor": lambda: Item(torch.zeros(3), 1),
    "a byte": lambda: Item(bytearray(3), 1),
    "an array of Python": lambda: Item(array.array("q", [0, 0])),
    "memory of ctypes": lambda: Item((ctypes.c_long * 3)()),
    "a view of an array": View,
    "a view of a tensor": TensorView,
    "an array of objects": lambda: Item(numpy.array([0, "a"], object)),
    "an attribute of its class": OfTheClass,
    "a global": Global,
    "a global's attribute": OfAModule,
    "an attribute of numpy": OfAnotherModule,
    "a module made by the program": ModuleMadeByTheProgram,
    "a closure": Closure,
    "a default argument": DefaultArgument,
    "an attribute of a function": OfAFunction,
    "a partial": Partial,
    "slots": Slots,
    "a dataclass with slots": DataSlots,
    "a frozen dataclass": Frozen,
    "a property": Property,
    "a cache": Remembered,
    "a variable of the environment": Environment,
    "a context variable": Context,
    "a variable of the thread": OfTheThread,
    "the level of a log": LevelOfALog,
    "decimal's precision": Precision,
    "warning filters": Filters,
    "the recursion limit": Limit,
    "the umask": Umask,
    "the default dtype": DefaultDtype,
    "the folder": Folder,
    "the locale": Locale,
    "a file in memory": Text,
    "a buffer of a module": ModuleOfTorch,
    "a parameter": Parameter,
    "a weak reference": Weak,
    "a dict by identity": OfItsKey,
    "a singleton": Single,
    "a value behind a lock": Locked,
    "a value behind a thread's lock": ThreadLocked,
}
"""Each process has its own: a change is seen by the processes that are forked after it."""

MOVING = {
    "Python's random draws": Draws,
    "numpy's random draws": DrawsOfNumpy,
    "torch's random draws": DrawsOfTorch,
    "a count": Count,
    "a generator": Generator,
}
"""Of a process, too, and each look moves them on."""

SHARED = {
    "a file": File,
    "a mapped file": MappedFile,
    "a shared mapping": lambda: Item(shared_by_forks()),
    "a shared tensor": lambda: Item(torch.zeros(3, dtype=torch.int64).share_memory_()),
    "a shared array": lambda: Item(multiprocessing.Array("q", 3)),
    "a raw shared array": lambda: Item(multiprocessing.RawArray("q", 3)),
    "a shared array seen by numpy": lambda: Item(
        numpy.frombuffer(multiprocessing.Array("q", 3).get_obj(), numpy.int64)
    ),
    "a shared value": Value,
    "a dict of a manager": Managed,
}
"""All processes have the same: a change is seen by all."""
