"""Loops of a registered loader where there are no data workers: torch's own, counted, and gone on with."""

from __future__ import annotations

import collections
import contextlib
import functools
import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterator

import torch
from torch.utils.data import DataLoader

from ..order import position, random_states
from ..order.index_batches import IndexBatches
from ..order.order import check
from ..order.order_digest import AnotherOrder, OrderDigest
from . import device as devices

if TYPE_CHECKING:
    from .registered import Registered

_NO_DATA_WORKERS = {"buffered": 0, "workers": 0, "hedged": 0}


@dataclass
class Drawn:
    """What one loop has drawn of its index sampler. Keeps neither that nor torch's iterator alive."""

    digest: OrderDigest | None = None
    """None until torch has asked for batches. Of a shared stream, of what all ranks have."""
    ranks: int = 1
    """How many of them have these batches together."""
    sizes: collections.deque[int] = field(default_factory=collections.deque)
    """How many samples are in the batches that are drawn and not taken."""
    has_raised: bool = False
    """The sampler, since this was last looked at."""


@contextlib.contextmanager
def _drawing(
    sampler: IndexBatches, loader: DataLoader, start: dict[str, Any], had: dict[str, Any] | None
) -> Iterator[Drawn]:
    """Inside, torch asks for the iterator of a loop that goes on behind `had`: twice, where it starts workers."""
    drawn = Drawn(ranks=sampler.ranks)
    last: list[_Draws] = []
    if had and had.get("order", (1,))[0] == 0:
        had = None  # nothing was drawn then

    def begin() -> Iterator[Any]:
        last[:] = [_Draws(drawn, sampler, loader, start, had)]
        return last[0]

    with sampler.instead(begin):
        yield drawn
        if had and last:
            last[0].begin()  # without worker processes nothing is drawn yet


class _Draws:
    def __init__(
        self, drawn: Drawn, sampler: IndexBatches, loader: DataLoader, start: dict[str, Any], had: dict[str, Any] | None
    ) -> None:
        self._batches = sampler.drawn()
        drawn.digest = sampler.digest
        drawn.sizes.clear()
        self._drawn = drawn
        self._digest = sampler.digest
        self._in_batches = loader.batch_sampler is not None
        self._is_lazy = not loader.num_workers  # drawn in next(): the program may have drawn since iter()
        self._start = start
        self._had = had
        self._has_begun = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.begin()
        indices = self._next()
        self._drawn.sizes.append(len(indices) if self._in_batches and hasattr(indices, "__len__") else 1)
        return indices

    def begin(self) -> None:
        """Once. Raises ValueError where what is left out is not what the loop has had."""
        if self._has_begun:
            return
        self._has_begun = True
        if (had := self._had) is None:
            if self._is_lazy:
                position.note_first_draw(self._start)
            return
        check(had, self._drawn.ranks, "batch")
        position.return_to_first_draw(self._start)
        try:
            for _ in range(had["batch"]):
                self._next()
        except StopIteration:
            raise AnotherOrder from None
        self._digest.expect_position(had)

    def _next(self) -> Any:
        try:
            return next(self._batches)
        except Exception as error:
            self._drawn.has_raised = not isinstance(error, StopIteration)
            raise


class PlainPlace:
    """How far a loop is. `drawn` is None where torch asks for no indices: of a stream, that is."""

    def __init__(self, drawn: Drawn | None, batch_size: int, taken: int) -> None:
        self.taken = taken
        self._drawn = drawn
        self._batch_size = batch_size

    def count(self) -> int:
        """One more batch was taken. How many samples it has, if it is not the last one of a stream."""
        self.taken += 1
        return self._drawn.sizes.popleft() if self._drawn and self._drawn.sizes else self._batch_size

    def has_sampler_raised(self) -> bool:
        """Since this was asked last: then there is no batch that could be left out."""
        if self._drawn is None or not self._drawn.has_raised:
            return False
        self._drawn.has_raised = False
        return True

    def position(self) -> dict[str, Any]:
        """As MapOrder's; of a stream, how many batches were taken."""
        if self._drawn is None or self._drawn.digest is None:
            return {"batches": self.taken, "ranks": 1}
        return self._drawn.digest.position(self.taken, self._drawn.ranks)

    def digest(self) -> str | None:
        """Of all batches that were drawn."""
        return self._drawn.digest.text() if self._drawn and self._drawn.digest else None

    def statistics(self) -> dict[str, int]:
        """For the launcher."""
        return _NO_DATA_WORKERS


class PlainLoop:
    """One loop: torch's iterator, counted. Everything else that is asked of it is asked of that."""

    def __init__(
        self,
        registration: Registered,
        loader: DataLoader,
        torchs: Callable[[], Any],
        device: torch.device | None,
    ) -> None:
        self._registration = registration
        self._device = device
        self._copies: devices.CudaCopies | None = None
        self._begin(loader, torchs)

    def _begin(self, loader: DataLoader, torchs: Callable[[], Any]) -> None:
        self._progress, self._place, self._batches = self._registration.begin_plain(loader, torchs)
        self._leaving = weakref.finalize(self, self._progress.report, is_left=True)
        self._leaving.atexit = False

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        """The next loop of persistent workers, asked for by an iterator that the loader's class has put around this."""
        self._leaving()
        batches = self._batches
        self._begin(loader, lambda: _again(batches, loader))

    def __iter__(self) -> PlainLoop:
        return self

    def __len__(self) -> int:
        return len(self._batches)

    def __getattr__(self, name: str) -> Any:
        if name == "_batches":  # not there yet
            raise AttributeError(name)
        return getattr(self._batches, name)

    def __next__(self) -> Any:
        while True:
            since = time.monotonic()
            try:
                if self._progress.is_enough():
                    raise StopIteration
                batch = next(self._batches)
            except StopIteration:
                if self._leaving.detach():  # the first time
                    self._registration.end_epoch(self._progress)
                raise
            except Exception as error:
                if self._place.has_sampler_raised() or _is_of_torch(error):
                    raise
                number = self._place.taken
                self._place.count()
                if not self._registration.skips_plain(error, self._progress, number):
                    raise
                continue
            self._progress.counted(self._place.count())
            self._progress.totals.waited += time.monotonic() - since
            self._progress.report()
            return batch if self._device is None else self._copied(batch, self._device)

    def _copied(self, batch: Any, device: torch.device) -> Any:
        self._copies = self._copies or devices.copies_to(device)
        return self._copies.copied(batch)


def _is_of_torch(error: Exception) -> bool:
    """What it says of its worker processes, and no batch has raised."""
    return isinstance(error, RuntimeError) and str(error).startswith(("DataLoader ", "Pin memory thread "))


def _again(batches: Any, loader: DataLoader) -> Any:
    """torch's iterator of persistent workers, for their next loop."""
    batches._reset(loader)
    return batches


def begin(
    sampler: IndexBatches | None,
    loader: DataLoader,
    torchs: Callable[[], Any],
    resume: dict[str, Any] | None,
) -> tuple[PlainPlace, dict[str, Any], Any]:
    """The place of a loop that begins, what position.start_of found, and torch's iterator, which `torchs` makes.

    With `resume`, the state of an interrupted loop, behind what that has had: a stream is made again up to there.
    """
    had = resume["position"] if resume else None
    goes_on = loader._iterator is not None  # with persistent workers, which draws less
    if resume:
        goes_on = resume["start"].get("goes_on", False) and loader.persistent_workers
        loader._iterator = None
        if goes_on:
            with (
                random_states.kept(),
                sampler.instead(lambda: iter(())) if sampler is not None else contextlib.nullcontext(),
            ):
                first = torchs()
            torchs = functools.partial(_again, first, loader)
    with position.as_at_the_start(loader, resume):
        start = dict(resume["start"]) if resume else position.start_of(loader)
        start["goes_on"] = goes_on
        with _drawing(sampler, loader, start, had) if sampler is not None else contextlib.nullcontext() as drawn:
            batches = torchs()
        if drawn is None or drawn.digest is None:  # a class with an index sampler of its own
            drawn = None
            if had:
                check(had, 1, "batches")
                _leave_out(batches, had["batches"])
    taken = 0 if not had else had["batches"] if drawn is None else had["batch"]
    return PlainPlace(drawn, loader.batch_size or 1, taken), start, batches


def _leave_out(batches: Any, count: int) -> None:
    for _ in range(count):
        try:
            next(batches)
        except StopIteration:
            raise ValueError(
                "taas: load_state_dict: the dataset ends before the place where this state was saved: it is another "
                "one, or gives other samples this time"
            ) from None
        except Exception as error:  # it was raised in the loop, too
            if _is_of_torch(error):
                raise
