"""Generators that a dataset makes without a seed: random.Random(), numpy.random.default_rng(), RandomState() and their like.

They would be seeded by the operating system, and a batch that is made again would be another one. While dataset code runs they
are seeded by what seed_all() was called with last. random.SystemRandom, secrets and os.urandom stay what they are.
"""

from __future__ import annotations

import contextlib
import random
import sys
from typing import Any, Iterator

import torch

_source = random.Random(0)
_plain_seed = random.Random.seed
_BITS = 256


def restart(seed: int) -> None:
    """What is made without a seed from now on has its seed from `seed`, and differs from one to the next."""
    _plain_seed(_source, seed)


def _seed(self: random.Random, a: Any = None, version: int = 2) -> None:
    _plain_seed(self, _source.getrandbits(_BITS) if a is None else a, version)


def _seed_the_global_one(a: Any = None, version: int = 2) -> None:
    _seed(random._inst, a, version)  # type: ignore[attr-defined]


def _seed_torch() -> int:
    seed = _source.getrandbits(63)
    torch.default_generator.manual_seed(seed)
    return seed


@contextlib.contextmanager
def repeatable() -> Iterator[None]:
    """Inside, generators without a seed are the same whenever the code is run again under the same seed."""
    places = [(random.Random, "seed", _seed), (random, "seed", _seed_the_global_one), (torch, "seed", _seed_torch),
              (torch.random, "seed", _seed_torch), (sys.modules.get("numpy.random.bit_generator"), "randbits", _source.getrandbits)]
    before = [(where, name, getattr(where, name)) for where, name, _ in places if hasattr(where, name)]
    for where, name, function in places:
        if hasattr(where, name):
            setattr(where, name, function)
    try:
        yield
    finally:
        for where, name, function in before:
            setattr(where, name, function)
