"""Where a registered loader's batches come from: the run's data workers, processes on this machine, or this process."""

from __future__ import annotations

import os

from torch.utils.data import DataLoader

from ..code.recipe import start_method
from ..runtime import events, native
from .base import Delivery
from .loop_forks import LoopForks

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
        events.remark_once(
            f"the native module is missing ({native.why_absent}): batches are made by forks of the training process"
        )
        return "process"
    if os.environ.get("TAAS_DATA_WORKERS") == "0":
        return "process"
    return "fork" if start_method(loader) == "fork" else "start"


def _new_delivery(way: str) -> Delivery:
    if way == "process":
        return LoopForks()
    if way == "plan":
        from .plan_delivery import delivery_of_plan

        return delivery_of_plan(os.environ["TAAS_DATA_PLAN"])
    from .local_delivery import Forked, Started

    return Forked() if way == "fork" else Started()


def _forget_in_child() -> None:
    """A fork of this process shares neither threads nor workers with it.

    What there was is kept, so that nothing ends it.
    """
    _left_to_the_parent.append(dict(_deliveries))
    _deliveries.clear()


_left_to_the_parent: list[dict[str, Delivery]] = []
os.register_at_fork(after_in_child=_forget_in_child)
