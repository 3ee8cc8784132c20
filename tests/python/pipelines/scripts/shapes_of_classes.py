"""Samples of the script's own classes: slotted, frozen, generic, reducing themselves, made by attrs and pydantic."""

import dataclasses
import enum
import importlib.util
import typing

import torch
from differential.pipeline import of_samples
from torch.utils.data import DataLoader, Dataset

T = typing.TypeVar("T")


@dataclasses.dataclass(slots=True)
class Slotted:
    x: int
    rows: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlotted:
    x: int
    tensor: torch.Tensor = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int


class WithBoth:
    __slots__ = ("above", "__dict__")


class Inherits(WithBoth):
    __slots__ = ("own", "__private")

    def __init__(self, x):
        self.above, self.own, self.free, self.__private = x, [x], "in the dictionary", -x


class Weak:
    __slots__ = ("above", "__weakref__")


@dataclasses.dataclass(slots=True)
class InheritsAsDataclass(Weak):
    x: int = 3

    def __post_init__(self):
        self.above = self.x


class OneSlot:
    __slots__ = "x"

    def __init__(self, x):
        self.x = x


class Reduces:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x

    def __reduce__(self):
        return Reduces, (self.x,)


class NamesItsArguments:
    __slots__ = ("x", "next")

    def __new__(cls, *, x):
        made = object.__new__(cls)
        made.x, made.next = x, x + 1
        return made

    def __getnewargs_ex__(self):
        return (), {"x": self.x}


class Pair(typing.NamedTuple, typing.Generic[T]):
    x: T
    y: int


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Parts(enum.IntFlag):
    LEFT = 1
    RIGHT = 2


class HandsOn:
    """A wrapper, as people write it: what is asked of it before it has an `inner` recurses for ever."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


SHAPES = [
    lambda x: Slotted(x, [x]),
    lambda x: FrozenSlotted(x, torch.tensor(x)),
    Frozen,
    Inherits,
    InheritsAsDataclass,
    OneSlot,
    Reduces,
    lambda x: NamesItsArguments(x=x),
    lambda x: Pair(x, 2),
    lambda x: Pair[int](x, 2),
    lambda x: {Colour.RED: x, Parts.LEFT | Parts.RIGHT: Colour.BLUE},
]
if importlib.util.find_spec("attrs"):
    import attrs

    @attrs.define
    class OfAttrs:
        x: int

    @attrs.frozen
    class FrozenOfAttrs:
        x: int

    SHAPES += [OfAttrs, FrozenOfAttrs]
if importlib.util.find_spec("pydantic"):
    import pydantic

    class Model(pydantic.BaseModel):
        x: int

    SHAPES.append(lambda x: Model(x=x))


class Wrapped(Dataset):
    """Its __getitem__ is found by the type, so that the wrapper has one."""

    size = 12

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index


HandsOn.__len__ = lambda self: self.size
HandsOn.__getitem__ = lambda self, index: self.inner[index]


class Shapes(Dataset):
    def __len__(self):
        return len(SHAPES)

    def __getitem__(self, index):
        return SHAPES[index](index)


@of_samples()
def wrapped_datasets_of_own_classes(workers):
    return DataLoader(HandsOn(Wrapped()), 3, num_workers=workers, collate_fn=list)


@of_samples()
def samples_of_own_classes(workers):
    return DataLoader(Shapes(), 3, num_workers=workers, collate_fn=list)
