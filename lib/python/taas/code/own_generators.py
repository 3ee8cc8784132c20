"""Generators that a dataset keeps: in its attributes, closures and the program's globals; numpy's, random's, torch's.

What they give would depend on which batches a process has made before. Each batch begins with a seed of its own
instead.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import pickle
import random
from typing import Any, Callable, Iterator, NamedTuple

import numpy
import torch

from .reach import reached_from
from .recipe import Recipe

_MOST = 1000
_LEAVES = (type(None), bool, int, float, complex, str, bytes, bytearray, torch.Tensor, numpy.ndarray, numpy.generic)


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


def found_in(recipe: Recipe) -> list[Any]:
    """Those that its code can reach: as far as a thousand objects tell."""
    waiting: collections.deque[Any] = collections.deque([recipe.dataset, recipe.collate_fn])
    seen: dict[int, Any] = {}
    found: list[Any] = []
    while waiting and len(seen) < _MOST:
        value = waiting.popleft()
        if id(value) in seen or isinstance(value, _LEAVES):
            continue
        seen[id(value)] = value
        if _access_to(value):
            found.append(value)
        else:
            waiting.extend(reached_from(value))
    return found


def _access_to(value: Any) -> _Access | None:
    """None for other objects, and for those that all of the process shares or that draw from the operating system."""
    if isinstance(value, random.SystemRandom) or any(value is shared for shared in _shared()):
        return None
    return next((access for kind, access in _KINDS.items() if isinstance(value, kind)), None)


def _known_access_to(generator: Any) -> _Access:
    """Of one that found_in() has found."""
    access = _access_to(generator)
    assert access is not None
    return access


def _shared() -> tuple[Any, ...]:
    return torch.default_generator, getattr(random, "_inst", None), getattr(numpy.random.mtrand, "_rand", None)


class OwnGenerators:
    """Those of one recipe.

    What a batch draws from them is a function of its seed, and they are afterwards what they were.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._found: list[tuple[Any, int]] = []
        self._is_first = True

    def __len__(self) -> int:
        """How many are known."""
        return len(self._found)

    def drawing(self, make: Callable[[], Any], seed: int) -> Any:
        """The batch that `make` makes.

        The first one of a process is made twice where there are generators: what the dataset prepares when it is first
        used, it prepares from them as they were, and some come into being only then.
        """
        if self._is_first:
            self._is_first = False
            return self._first(make, seed)
        return self._seeded(make, seed)

    def _first(self, make: Callable[[], Any], seed: int) -> Any:
        before = found_in(self._recipe)
        try:
            with _kept(before):
                batch = make()
        except Exception:
            if not before:
                raise
        finally:
            self._found = _numbered(found_in(self._recipe))
        return self._seeded(make, seed) if self._found else batch

    def _seeded(self, make: Callable[[], Any], seed: int) -> Any:
        if not self._found:
            return make()
        with _kept([generator for generator, _ in self._found]):
            for generator, number in self._found:
                _known_access_to(generator).seed(generator, _mixed(seed, number))
            return make()


@contextlib.contextmanager
def _kept(generators: list[Any]) -> Iterator[None]:
    states = [_known_access_to(generator).state(generator) for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states):
            _known_access_to(generator).restore(generator, state)


def _numbered(generators: list[Any]) -> list[tuple[Any, int]]:
    """Those in the same state have the same number, and go on in step: those of an image and of its mask, say."""
    numbers: dict[bytes, int] = {}
    return [
        (generator, numbers.setdefault(pickle.dumps(_known_access_to(generator).state(generator)), len(numbers)))
        for generator in generators
    ]


def _mixed(seed: int, number: int) -> int:
    words = seed.to_bytes(8, "little") + number.to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(words, digest_size=8, person=b"taas own").digest(), "little") >> 1
