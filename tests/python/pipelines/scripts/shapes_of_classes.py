"""Samples of the script's own classes: slotted, frozen, generic, reducing themselves, made by attrs and pydantic."""

import dataclasses
import enum
import importlib.util
import typing

import torch
from differential.pipeline import pipeline
from pipelines.everyday import Made
from torch.utils.data import DataLoader

T = typing.TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlotted:
    x: int
    tensor: torch.Tensor = None


class WithBoth:
    __slots__ = ("above", "__dict__")


class Inherits(WithBoth):
    __slots__ = ("own", "__private")

    def __init__(self, x):
        self.above, self.own, self.free, self.__private = x, [x], "in the dictionary", -x


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


class Parts(enum.IntFlag):
    LEFT = 1
    RIGHT = 2


SHAPES = [
    lambda x: FrozenSlotted(x, torch.tensor(x)),
    Inherits,
    Reduces,
    lambda x: NamesItsArguments(x=x),
    lambda x: Pair[int](x, 2),
    lambda x: {Parts.LEFT: x, 1: Parts.LEFT | Parts.RIGHT},
]
if importlib.util.find_spec("attrs"):
    import attrs

    @attrs.frozen
    class FrozenOfAttrs:
        x: int

    SHAPES.append(FrozenOfAttrs)
if importlib.util.find_spec("pydantic"):
    import pydantic

    class Model(pydantic.BaseModel):
        x: int

    SHAPES.append(lambda x: Model(x=x))


class HandsOn:
    """A wrapper, as people write it: what is asked of it before it has an `inner` recurses for ever."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return self.inner[index]


@pipeline(epochs=1)
def samples_of_own_classes(workers):
    return DataLoader(
        HandsOn(Made(lambda index: SHAPES[index](index), len(SHAPES))), 3, num_workers=workers, collate_fn=list
    )
