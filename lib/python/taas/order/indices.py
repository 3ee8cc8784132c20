"""The order of an epoch: what the next batch is for certain, and what the ones behind it will be."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from ..program import random_states
from .draws import PlainDraws
from .order_digest import OrderDigest
from .sampler_prediction import PredictionBudget, Rehearsal, is_settled_at_first_draw
from .shared_batches import shared_batches_of


class Indices:
    """Index batches of one epoch of a map-style dataset, in the sampler's order.

    Made in iter() of the loader, which calls `begin` once the dataset is taken as it is. Each next() of the loop calls
    `certain` and, when it has its batch, `delivered`.
    """

    def __init__(self, loader: DataLoader, budget: PredictionBudget, resumed: bool = False) -> None:
        self._budget = budget
        sampler = loader._index_sampler
        self._settled = is_settled_at_first_draw(sampler)
        self._rehearsal = None if self._settled or not budget else _rehearsed(loader, resumed)
        self._shared = shared_batches_of(loader)
        self._digest = OrderDigest()
        self._draws = PlainDraws(loader, sampler, loader.generator, resumed, self._note)
        if self._rehearsal:
            self._rehearsal.begin()

    @property
    def digest(self) -> OrderDigest:
        """Of what has been drawn; of a shared stream, of what all ranks have."""
        return self._shared.digest if self._shared else self._digest

    @property
    def ranks(self) -> int:
        """How many ranks have these batches together."""
        return self._shared.ranks if self._shared else 1

    def begin(self) -> None:
        """The draws that the plain loader makes once its workers are started."""
        self._draws.begin()

    def certain(self) -> Any:
        """The index batch of this next(). Raises StopIteration at the end of the epoch."""
        indices = self._draws.take()
        if self._rehearsal:
            self._rehearsal.step()
        return indices

    def delivered(self) -> None:
        """The loop has its batch."""
        self._draws.after()

    def ahead(self, position: int) -> Any:
        """Most probably the batch `position` places behind the next one.

        Raises StopIteration where the epoch will have ended, Unknown where nothing can be said.
        """
        if self._settled and self._draws.has_begun:
            return self._draws.ahead(position)
        if self._rehearsal and self._budget:
            return self._rehearsal.ahead(position)
        return self._draws.known(position)

    def mistaken(self) -> None:
        """What `ahead` has said was wrong."""
        self._budget.mistaken()

    def _note(self, indices: Any) -> None:
        if not self._shared:  # which notes by itself
            self._digest.note(indices)


def _rehearsed(loader: DataLoader, resumed: bool) -> Rehearsal | None:
    """None for samplers that cannot be copied: then nothing is drawn earlier than by the plain loader."""
    try:
        return Rehearsal(loader, random_states.capture(), resumed)
    except Exception:
        return None
