"""Which loaders are shared by all ranks, and how that begins."""

from __future__ import annotations

import os
import weakref
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from ..sending import place
from ..runtime.identity import rank, ranks
from .common_order import NoMeetingPlace

_noted: weakref.WeakSet[DataLoader[Any]] = weakref.WeakSet()


def is_wanted(loader: DataLoader[Any], shared: bool | None) -> bool:
    """Whether `loader` is to be shared: as its registration says, or as --split says for all that can be.

    Raises ValueError with one line for a registration that cannot be followed.
    """
    if not (shared or shared is None and os.environ.get("TAAS_SPLIT") == "1"):
        return False
    if is_stream(loader) and not shared:  # its __iter__ may give each rank a part of its own
        return False
    if any(hasattr(sampler, "num_replicas") for sampler in (loader.sampler, loader.batch_sampler)):
        if shared:
            raise ValueError(
                "shared=True, but its DistributedSampler gives each rank a part already: leave out one of the two"
            )
        return False
    return True


def place_of_rank() -> tuple[int, int]:
    """This rank's, and how many there are: of the process group, where there is one."""
    group = place.group()
    return (group[1], group[2]) if group else (rank(), ranks())


def check(name: str, count: int) -> None:
    """Raises NoMeetingPlace where a group has been made since, of another size than the loader is shared by."""
    group = place.group()
    if group and group[2] != count:
        raise NoMeetingPlace(
            f"taas: {name} was registered with shared=True for {count} {'rank' if count == 1 else 'ranks'}, and the "
            f"process group has {group[2]}: register it after init_process_group"
        )


def note(loader: DataLoader[Any], wanted: bool) -> None:
    """In a data worker, which is no rank: what it prepares for ranks is their share."""
    if wanted:
        _noted.add(loader)


def is_noted(loader: DataLoader[Any]) -> bool:
    """Whether ranks will share `loader`, as far as a data worker can tell: it has seen its registration, or --split."""
    return loader in _noted or is_wanted(loader, None)


def is_stream(loader: DataLoader[Any]) -> bool:
    """Whether its dataset has no indices."""
    return isinstance(loader.dataset, IterableDataset)
