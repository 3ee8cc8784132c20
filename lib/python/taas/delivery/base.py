"""What all ways to have batches made have in common."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from .feed import Opening


class Delivery:
    """What all ways have in common."""

    on_error = "raise"
    samples_wanted = 0
    """How many samples the loops over each loader are to give in this rank, all together; 0: as many as there are."""

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
