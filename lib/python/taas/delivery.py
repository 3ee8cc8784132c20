"""Where a registered loader's batches come from: the data workers of the run, processes on this machine, or this process."""

from __future__ import annotations

import os
from typing import Any

from torch.utils.data import DataLoader

from . import events, native
from .feed import Opening
from .in_process import InProcessStream, end_all
from .logical_process import LogicalProcess
from .recipe import recipe_of, start_method


class Delivery:
    """What all ways have in common."""

    on_error = "raise"
    samples_wanted = 0
    """How many samples the loops over each loader are to give in this rank, all together; 0: as many as there are."""

    is_apart = True
    """False when the training process itself makes the batches."""

    is_forked = False
    """True when workers are forks, which have the dataset as it is without being sent it."""

    prefetches = False
    """True when batches may be asked for before the first loop: workers are there anyhow."""

    def opener(self, registered: Any, loader: DataLoader) -> Opening:
        """For streams over the loader as it is now. Raises TypeError when it cannot be sent to workers."""
        raise NotImplementedError

    def count(self) -> int:
        """How many data workers there are."""
        return 0

    def name_for(self, loader: DataLoader) -> str:
        """What the run calls the loader; nothing where it has no name for it."""
        return ""

    def release(self, token: int) -> None:
        """The loader whose registration has this token is unregistered, or gone."""


class InProcess(Delivery):
    """No data workers."""

    is_apart = False

    def __init__(self) -> None:
        self._unused: dict[int, list[InProcessStream]] = {}  # by registration
        self._persistent: dict[int, list[LogicalProcess]] = {}

    @classmethod
    def in_the_place_of(cls, other: Delivery) -> InProcess:
        """With what the run wants of it."""
        delivery = cls()
        delivery.on_error, delivery.samples_wanted = other.on_error, other.samples_wanted
        return delivery

    def opener(self, registered: Any, loader: DataLoader) -> Opening:
        """The first stream begins with the dataset as it is now: a sampler may change it when it is drawn."""
        self._close_unused(registered.token)
        recipe = recipe_of(loader)
        kept = self._persistent.setdefault(registered.token, []) if loader.persistent_workers else None
        first = self._unused[registered.token] = [InProcessStream(recipe, kept)]
        return Opening("", lambda: first.pop() if first else InProcessStream(recipe, kept))

    def release(self, token: int) -> None:
        self._close_unused(token)
        end_all(self._persistent.pop(token, []))

    def _close_unused(self, token: int) -> None:
        for unused in self._unused.pop(token, []):
            unused.close()


_deliveries: dict[str, Delivery] = {}


def delivery_for(loader: DataLoader) -> Delivery:
    """The way for `loader`; loaders of one kind share it, its workers and its memory."""
    way = _way_for(loader)
    if way not in _deliveries:
        _deliveries[way] = _new_delivery(way)
    return _deliveries[way]


def _way_for(loader: DataLoader) -> str:
    if os.environ.get("TAAS_DATA_PLAN"):
        return "plan"
    if native.module is None:
        events.remark_once(f"the native module is missing ({native.why_absent}): batches are made in the training process")
        return "process"
    if os.environ.get("TAAS_DATA_WORKERS") == "0":
        return "process"
    return "fork" if start_method(loader) == "fork" else "start"


def _new_delivery(way: str) -> Delivery:
    if way == "process":
        return InProcess()
    if way == "plan":
        from .plan_delivery import delivery_of_plan

        return delivery_of_plan(os.environ["TAAS_DATA_PLAN"])
    from .local_delivery import Forked, Started

    return Forked() if way == "fork" else Started()


def _forget_in_child() -> None:
    """A fork of this process shares neither threads nor workers with it. What there was is kept, so that nothing ends it."""
    _left_to_the_parent.append(dict(_deliveries))
    _deliveries.clear()


_left_to_the_parent: list[dict[str, Delivery]] = []
os.register_at_fork(after_in_child=_forget_in_child)
