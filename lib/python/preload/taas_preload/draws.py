"""Finds out what modules draw at random while they are imported, which would then be the same in all ranks.

A generator that was not given a seed is noticed, and gets a new one in each rank. What has been drawn already (a
number, a UUID) lies somewhere as a value and cannot be drawn again: its module is named, and no rank is forked from
here.
"""

import gc
import os
import random
import sys
import weakref
from types import TracebackType
from typing import Any

_HELPERS = ("importlib._bootstrap", "importlib._bootstrap_external", "os", "random", "secrets", "uuid")
"""Modules that draw for others, or load an extension module, which has no frame of its own."""
_HARMLESS = (
    "multiprocessing",
    "networkx",
    "numpy",
    "scipy",
    "sympy",
    "tempfile",
    "torch",
    "diffusers.utils.hub_utils",
    "transformers.utils.hub",
)
"""What these draw at import are names within the process, or is drawn again after a fork (tempfile, and those that
fresh_state.py takes care of), or, the last two, tells visits to a server apart."""
_FRESH = 624  # the position of a Mersenne twister that nothing was drawn from

_unseeded: list[random.Random] = []
_unseeded_of_numpy: list[Any] = []


def renew() -> None:
    """In a rank: the generators that were noticed draw something else from now on."""
    for generator in _unseeded:
        random.Random.seed(generator)
    for generator in _unseeded_of_numpy:
        generator.__setstate__(type(generator)().__getstate__())


class Draws:
    """While it is entered, watches the sources of randomness that Python modules have."""

    def __init__(self) -> None:
        self._taken: list[tuple[bytes, str]] = []  # from the system, and by whom
        self._generators: list[tuple[weakref.ref[random.Random], str]] = []  # without a seed, and whose
        self._urandom, self._seed = os.urandom, random.Random.seed
        self._watching = False

    def __enter__(self) -> "Draws":
        def urandom(size: int, /) -> bytes:
            drawn = self._urandom(size)
            if self._watching:
                self._taken.append((drawn, _owner()))
            return drawn

        def seed(generator: random.Random, a: Any = None, version: int = 2) -> None:
            self._forget(generator)
            if a is None:
                self._generators.append((weakref.ref(generator), _owner()))
            self._seed(generator, a, version)

        self._watched = os.urandom = random._urandom = urandom  # type: ignore[attr-defined]
        random.Random.seed = seed  # type: ignore[method-assign]
        self._watching = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watching = False
        random.Random.seed = self._seed  # type: ignore[method-assign]
        for module in list(sys.modules.values()):
            for name in ("urandom", "_urandom"):
                if getattr(module, "__dict__", {}).get(name) is self._watched:
                    module.__dict__[name] = self._urandom

    def find_kept(self) -> set[str]:
        """Remembers for renew() the generators that can have a new seed, and returns the modules that have drawn what
        cannot be drawn again."""
        owners = self._look_at_numpys()
        for reference, owner in self._generators:
            generator = reference()
            if generator is not None:
                _unseeded.append(generator)
            if generator is None or random.Random.getstate(generator)[1][-1] != _FRESH:
                owners.add(owner)
        return {owner for owner in owners if not _is_harmless(owner)}

    def _look_at_numpys(self) -> set[str]:
        """The modules that have drawn from the system something else than seeds of generators that are still fresh."""
        others = [
            (int.from_bytes(drawn, "big"), owner) for drawn, owner in self._taken if not owner.startswith("numpy.")
        ]
        generators = _numpys(dict(others))
        _unseeded_of_numpy.extend(generator for alike in generators.values() for generator in alike)
        return {owner for drawn, owner in others if not all(map(_is_fresh, generators.get(drawn, [None])))}

    def _forget(self, generator: random.Random) -> None:
        self._generators = [(reference, owner) for reference, owner in self._generators if reference() is not generator]


def _numpys(seeds: dict[int, str]) -> dict[int, list[Any]]:
    """The generators of numpy that have these seeds."""
    found: dict[int, list[Any]] = {}
    if not seeds or "numpy.random" not in sys.modules:
        return found
    everything = gc.get_objects()
    base = sys.modules["numpy.random"].BitGenerator
    kinds = {kind for kind in set(map(type, everything)) if issubclass(kind, base)}
    for generator in everything:
        if type(generator) in kinds and (seed := getattr(generator.seed_seq, "entropy", None)) in seeds:
            found.setdefault(seed, []).append(generator)
    return found


def _owner() -> str:
    """The module that draws: the one that has called the watched function, by way of helpers."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__") in _HELPERS:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__"))


def _is_harmless(owner: str) -> bool:
    return any(owner == name or owner.startswith(name + ".") for name in _HARMLESS)


def _is_fresh(generator: Any) -> bool:
    """That it can be renewed with its seed (from numpy 1.25 on), and that it stands where its seed has put it."""
    return (
        generator is not None
        and isinstance(generator.__getstate__(), tuple)
        and repr(type(generator)(generator.seed_seq).state) == repr(generator.state)
    )
