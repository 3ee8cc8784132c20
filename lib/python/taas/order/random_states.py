"""The random states of this process: torch's default generator, numpy's and random's."""

from __future__ import annotations

import contextlib
import random
import sys
from typing import Any, Iterator, NamedTuple

import torch


class RandomStates(NamedTuple):
    """What `capture` found. `numpy` is None while the program has not imported numpy."""

    torch: torch.Tensor
    random: tuple[Any, ...]
    numpy: Any


def _numpy_random() -> Any:
    numpy = sys.modules.get("numpy")
    return getattr(numpy, "random", None)


def capture() -> RandomStates:
    """The states as they are now."""
    numpy_random = _numpy_random()
    numpy = numpy_random.get_state() if numpy_random else None
    return RandomStates(torch.default_generator.get_state(), random.getstate(), numpy)


def restore(states: RandomStates) -> None:
    """Puts the states back."""
    torch.default_generator.set_state(states.torch)
    random.setstate(states.random)
    if states.numpy is not None:
        _numpy_random().set_state(states.numpy)


def same(one: RandomStates, other: RandomStates) -> bool:
    """True when nothing was drawn between the two."""
    if not torch.equal(one.torch, other.torch) or one.random != other.random:
        return False
    if one.numpy is None or other.numpy is None:
        return one.numpy is other.numpy
    return all(
        bool((left == right).all()) if hasattr(left, "all") else left == right
        for left, right in zip(one.numpy, other.numpy)
    )


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """What is drawn inside does not count: the states are afterwards as they were before."""
    before = capture()
    try:
        yield
    finally:
        restore(before)
