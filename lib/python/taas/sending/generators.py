"""Random generators that come with a dataset, its collate_fn and its worker_init_fn: numpy's, random's and torch's.

What they give would depend on which batches a process has made before. Each batch of a map-style dataset begins with a
seed of its own instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import random
from typing import Any, Callable, Iterator, NamedTuple

import numpy
import torch


class _Access(NamedTuple):
    state: Callable[[Any], Any]
    restore: Callable[[Any, Any], None]
    seed: Callable[[Any, int], None]


def _seed_numpy(generator: numpy.random.Generator, seed: int) -> None:
    generator.bit_generator.state = type(generator.bit_generator)(seed).state


_KINDS: dict[type, _Access] = {
    numpy.random.Generator: _Access(
        lambda own: own.bit_generator.state, lambda own, state: setattr(own.bit_generator, "state", state), _seed_numpy
    ),
    numpy.random.RandomState: _Access(
        lambda own: own.get_state(legacy=False),
        lambda own, state: own.set_state(state),
        lambda own, seed: own.seed(seed & 0xFFFFFFFF),
    ),
    random.Random: _Access(
        lambda own: own.getstate(), lambda own, state: own.setstate(state), lambda own, seed: own.seed(seed)
    ),
    torch.Generator: _Access(
        lambda own: own.get_state(), lambda own, state: own.set_state(state), lambda own, seed: own.manual_seed(seed)
    ),
}


_TYPES = tuple(_KINDS)


def _of_the_process() -> list[tuple[Any, Any, str]]:
    """Those that every process has, each with its module and its name: they are seeded for each batch anyway."""
    return [
        (torch.default_generator, torch, "default_generator"),
        (getattr(random, "_inst"), random, "_inst"),
        (getattr(numpy.random.mtrand, "_rand"), numpy.random.mtrand, "_rand"),
    ]


def reduced(value: Any, met: list[Any]) -> Any:
    """For reducer_override: of one that announces itself when it is unpickled, which is added to `met`.

    The process' own go by their names. NotImplemented for everything else, and for those that draw from the operating
    system.
    """
    if not isinstance(value, _TYPES) or isinstance(value, random.SystemRandom):
        return NotImplemented
    for shared, module, name in _of_the_process():
        if value is shared:
            return getattr, (module, name)
    met.append(value)
    how: Any = value.__reduce_ex__(5)
    return _made, how[:2], *how[2:]


_arriving: list[Any] = []


def _made(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    _arriving.append(generator := make(*arguments))
    return generator


def arrived() -> list[Any]:
    """Those that were unpickled since the last call."""
    found = list(_arriving)
    _arriving.clear()
    return found


class Generators:
    """Those of one copy of a recipe.

    What a batch draws from them is a function of its seed, and they are afterwards what they were.
    """

    def __init__(self, found: list[Any]) -> None:
        numbers: dict[bytes, int] = {}  # those in the same state go on in step: those of an image and of its mask, say
        self._found = [
            (each, access, numbers.setdefault(pickle.dumps(access.state(each)), len(numbers)))
            for each in found
            for access in [next(access for kind, access in _KINDS.items() if isinstance(each, kind))]
        ]
        self._is_first = True

    def __len__(self) -> int:
        return len(self._found)

    def drawing(self, make: Callable[[], Any], seed: int) -> Any:
        """The batch that `make` makes.

        The first one is made twice where there are generators: what the dataset prepares when it is first used, it
        prepares from them as they were.
        """
        if not self._found:
            return make()
        if self._is_first:
            self._is_first = False
            with self._kept(), contextlib.suppress(Exception):
                make()
        with self._kept():
            for generator, access, number in self._found:
                access.seed(generator, _mixed(seed, number))
            return make()

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        states = [access.state(generator) for generator, access, _ in self._found]
        try:
            yield
        finally:
            for (generator, access, _), state in zip(self._found, states):
                access.restore(generator, state)


def _mixed(seed: int, number: int) -> int:
    words = seed.to_bytes(8, "little") + number.to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(words, digest_size=8, person=b"taas own").digest(), "little") >> 1
