"""Knowing index batches before the plain loader would have drawn them, without a trace in any random state."""

from __future__ import annotations

import contextlib
import copy
import threading
from typing import Any, Callable, Iterator

import numpy
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from ..code.purity import DatasetView, Impure, datasets_of
from ..program import random_states
from .draws import PlainDraws, Unknown
from .shared_batches import own_sampler

_SELF_CONTAINED = (
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    DistributedSampler,
    list,
    tuple,
    range,
)
_STATELESS = (SequentialSampler, DistributedSampler, list, tuple, range)
_LISTS = (list, tuple, range, torch.Tensor, numpy.ndarray)
_MISTAKES_ALLOWED = 3


def is_settled_at_first_draw(sampler: Any) -> bool:
    """True for samplers that touch random states in their first draw only: what follows may be drawn at any time."""
    sampler = own_sampler(sampler)
    kind = type(sampler)
    if kind is BatchSampler:
        return is_settled_at_first_draw(sampler.sampler)
    if kind is SubsetRandomSampler and type(sampler.indices) not in _LISTS:
        return False
    return kind in _SELF_CONTAINED or (kind is RandomSampler and sampler.generator is None)


def needs_no_state(loader: DataLoader) -> bool:
    """True when the next epoch's order does not depend on the process' random states: it can be told at any time."""
    sampler = own_sampler(loader._index_sampler)
    sampler = sampler.sampler if type(sampler) is BatchSampler else sampler
    if type(sampler) in _STATELESS:
        return True
    generator = getattr(sampler, "generator", None)
    return type(sampler) in _SELF_CONTAINED + (RandomSampler,) and generator not in (None, torch.default_generator)


def first_batches(loader: DataLoader, count: int, resumed: bool, changed: Callable[[Any], Any]) -> list[Any]:
    """The first `count` index batches, or all, of a loop that would begin now; no random state is touched.

    `changed` may change the copy of the sampler that is drawn from, or give another. Raises as copy_of_sampler does.
    """
    sampler, generator = copy_of_sampler(loader)
    batches: list[Any] = []
    with random_states.kept(), contextlib.suppress(StopIteration, Impure):
        draws = PlainDraws(loader, changed(sampler), generator, resumed)
        draws.begin()
        for position in range(count):
            batches.append(draws.ahead(position))
    return batches


def copy_of_sampler(loader: DataLoader) -> tuple[Any, Any]:
    """The loader's index sampler and its generator, independent of the originals; of the dataset there is a view.

    Raises whatever a sampler that cannot be copied raises, and Unknown for one that may do more than draw.
    """
    try:
        shared = [loader.dataset, *datasets_of(own_sampler(loader._index_sampler), loader.dataset)]
    except Impure as reason:
        raise Unknown(str(reason)) from None
    views = {id(dataset): DatasetView(dataset) for dataset in shared}
    return copy.deepcopy((loader._index_sampler, loader.generator), views)


class Rehearsal:
    """Draws from a copy of the sampler, with random states of its own. What it says is a prediction.

    A copy that raises knows nothing from then on: the sampler itself will raise in its place, or will not. Nor does one
    that is asked by another thread than it was made by: the process' random states, which it needs for a while, are in
    use by the program then. `states` are the random states that it starts with; `changed` may change the copy of the
    sampler, or give another.
    """

    def __init__(
        self,
        loader: DataLoader,
        states: random_states.RandomStates,
        resumed: bool = False,
        changed: Callable[[Any], Any] = lambda sampler: sampler,
    ) -> None:
        sampler, generator = copy_of_sampler(loader)
        sampler = changed(sampler)
        self._states = states
        self._has_raised = False
        self._thread = threading.get_ident()
        self._draws = self._apart(lambda: PlainDraws(loader, sampler, generator, resumed))

    def begin(self) -> None:
        """The draws of iter()."""
        with contextlib.suppress(Unknown):
            self._apart(self._draws.begin)

    def ahead(self, position: int) -> Any:
        """The batch so many places behind the next one. Raises StopIteration at the end of the epoch."""
        return self._apart(lambda: self._draws.ahead(position))

    def step(self) -> None:
        """The real loader has taken its next batch."""
        try:
            self._apart(lambda: self._draws.ahead(0))
            self._draws.take()
        except (StopIteration, Unknown):
            pass

    def batches(self) -> Iterator[Any]:
        """All of them, from the next one on."""
        while True:
            try:
                indices = self.ahead(0)
            except (StopIteration, Unknown):
                return
            self.step()
            yield indices

    def _apart(self, action: Any) -> Any:
        if self._has_raised or threading.get_ident() != self._thread:
            self._has_raised = True
            raise Unknown
        with random_states.kept():
            random_states.restore(self._states)
            try:
                return action()
            except StopIteration:
                raise
            except (Exception, Impure) as error:
                self._has_raised = True
                raise Unknown from error
            finally:
                self._states = random_states.capture()


class PredictionBudget:
    """Whether a loader's sampler is worth rehearsing: not after it has drawn something else three times."""

    def __init__(self) -> None:
        self._mistakes = 0

    def mistaken(self) -> None:
        self._mistakes += 1

    def __bool__(self) -> bool:
        return self._mistakes < _MISTAKES_ALLOWED
