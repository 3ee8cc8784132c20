"""What a dataset may ask about the worker that it runs in: as with the plain loader, in logical workers.

A loader with num_workers=4 has four logical workers wherever and by however many processes its batches are made.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, cast

import torch
from torch.utils.data._utils import collate as torch_collate
from torch.utils.data._utils import worker as torch_worker

from ..order.seeds import seed_all


class SeedsRead:
    """Whether a dataset has looked at a seed: what it made may then depend on it, though nothing was drawn."""

    seen = False


def notice_initial_seed() -> None:
    """In a data worker's process: torch.initial_seed() counts as looking at the seed."""

    def initial_seed() -> int:
        SeedsRead.seen = True
        return torch.default_generator.initial_seed()

    torch.initial_seed = torch.random.initial_seed = initial_seed


class WorkerInfo:
    """Like torch's: `id`, `num_workers`, `seed` and `dataset`."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id = id
        self.num_workers = num_workers
        self.dataset = dataset
        self._seed = seed

    @property
    def seed(self) -> int:
        """The logical worker's seed in this epoch: 63 bits, so that torch.manual_seed takes it."""
        SeedsRead.seen = True
        return self._seed & 0x7FFFFFFFFFFFFFFF

    def initialise(self, worker_init_fn: Callable[[int], None]) -> None:
        """Calls it as the plain loader's worker does, under the logical worker's seed."""
        seed_all(self._seed)
        with active(self):
            worker_init_fn(self.id)

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


def get_worker_info() -> WorkerInfo | None:
    """In code that a data worker runs: the logical worker. None in the training loop itself."""
    return cast("WorkerInfo | None", torch.utils.data.get_worker_info())


def _collate_tensors(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Collates tensors as the plain loader's training process does.

    torch puts what a worker collates into shared memory.
    """
    info, torch_worker._worker_info = torch_worker._worker_info, None
    try:
        return _torch_collate_tensors(batch, collate_fn_map=collate_fn_map)
    finally:
        torch_worker._worker_info = info


_torch_collate_tensors = torch_collate.default_collate_fn_map[torch.Tensor]


@contextlib.contextmanager
def active(info: WorkerInfo | None) -> Iterator[None]:
    """Inside, get_worker_info() of torch and of taas return `info`, and collating makes ordinary tensors."""
    before = torch_worker._worker_info
    table = torch_collate.default_collate_fn_map
    former = table[torch.Tensor]
    torch_worker._worker_info = cast(Any, info)
    table[torch.Tensor] = _collate_tensors
    try:
        yield
    finally:
        torch_worker._worker_info = before
        table[torch.Tensor] = former
