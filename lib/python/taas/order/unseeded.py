"""Generators that a dataset makes without a seed: random.Random(), numpy.random.default_rng(), RandomState() and so on.

They would be seeded by the operating system, and a batch that is made again would be another one. While dataset code
runs they are seeded by what seed_all() was called with last. random.SystemRandom, secrets and os.urandom stay what they
are.
"""

from __future__ import annotations

import _random
import random
import secrets
import sys
from typing import Any

import torch

_plain_seed = random.Random.seed
_plain_seed_of_torch = torch.random.seed
_BITS = 256


class _Source:
    """Seeds for generators that have none. Begins anew with the first one that is asked for after restart()."""

    def __init__(self) -> None:
        self._numbers = random.Random(0)
        self._seed: int | None = 0
        self.has_given = False
        self.is_in_use = False
        self.stays = False

    def restart(self, seed: int) -> None:
        self._seed = seed
        self.has_given = False

    def bits(self, count: int) -> int:
        if self._seed is not None:
            _plain_seed(self._numbers, self._seed)
            self._seed = None
        self.has_given = True
        return self._numbers.getrandbits(count)


_source = _Source()


def restart(seed: int) -> None:
    """What is made without a seed from now on has its seed from `seed`, and differs from one to the next."""
    _source.restart(seed)


def has_given() -> bool:
    """Whether anything was seeded since then."""
    return _source.has_given


def _seed(self: random.Random, a: Any = None, version: int = 2) -> None:
    _plain_seed(self, _source.bits(_BITS) if a is None and _source.is_in_use else a, version)


def _seed_the_global_one(a: Any = None, version: int = 2) -> None:
    _seed(random._inst, a, version)  # type: ignore[attr-defined]


def seed_global_one(seed: int) -> None:
    """As random.seed(seed), without what that does for numbers of other types."""
    generator: Any = random._inst  # type: ignore[attr-defined]
    _random.Random.seed(generator, seed)
    generator.gauss_next = None


def _seed_torch() -> int:
    if not _source.is_in_use:
        return _plain_seed_of_torch()
    seed = _source.bits(63)
    torch.default_generator.manual_seed(seed)
    return seed


def _randbits(count: int) -> int:
    return _source.bits(count) if _source.is_in_use else secrets.randbits(count)


class Repeatable:
    """Inside, generators without a seed are the same whenever the code is run again under the same seed."""

    def __enter__(self) -> None:
        self._before = [] if _source.stays else _exchange()
        self._was_in_use = _source.is_in_use
        _source.is_in_use = True

    def __exit__(self, *_: object) -> None:
        _source.is_in_use = self._was_in_use
        for where, name, function in self._before:
            setattr(where, name, function)


def stay() -> None:
    """In a data worker: the functions that seed are not put in their places anew for each batch.

    A class that is changed costs all that is done with it next.
    """
    _exchange()
    _source.stays = True


def _exchange() -> list[tuple[Any, str, Any]]:
    """Puts in their places those that are not there yet; returns what was there."""
    before = []
    for where, name, function in (
        (random.Random, "seed", _seed),
        (random, "seed", _seed_the_global_one),
        (torch, "seed", _seed_torch),
        (torch.random, "seed", _seed_torch),
        (sys.modules.get("numpy.random.bit_generator"), "randbits", _randbits),
    ):
        found = getattr(where, name, function)
        if found is not function:
            before.append((where, name, found))
            setattr(where, name, function)
    return before
