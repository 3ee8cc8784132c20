"""One stream of batches for all ranks together: `taas.register(loader, shared=True)`."""

from __future__ import annotations

import itertools
from typing import Any, Iterator, Protocol

from torch.utils.data import DataLoader, Sampler

from ..runtime import events
from .order_digest import OrderDigest

NOTHING = object()
"""In the place of a batch: there is none for this rank."""


class Agreement(Protocol):
    """Makes all ranks draw the same stream: see CommonOrder."""

    name: str

    def begin_loop(self) -> None: ...
    def batches(self, sampler: Any) -> Iterator[Any]: ...
    def compare(self, where: str, drawn: tuple[int, int]) -> None: ...


class SharedBatches(Sampler[Any]):
    """Stands in the place of a loader's index sampler: gives those of its batches that are this rank's.

    Rank r has the batches r, r + ranks, r + 2 * ranks … of the stream, and all ranks have the same number of them: see
    `rounds`. Everything else that is asked of it is asked of `inner`, the loader's own sampler.
    """

    def __init__(self, inner: Any, rank: int, ranks: int, drop_last: bool, agreement: Agreement | None = None) -> None:
        """Without an agreement nothing is communicated."""
        self.inner = inner
        self.rank = rank
        self.ranks = ranks
        self.drop_last = drop_last
        self.digest = OrderDigest()
        """Of the loop under way, over all ranks' batches: the same in all of them."""
        self._agreement = agreement

    def begin_loop(self) -> None:
        """The next stream is that of one more loop over the loader."""
        if self._agreement:
            self._agreement.begin_loop()

    def __iter__(self) -> Iterator[Any]:
        self.digest = OrderDigest()
        batches = self._agreement.batches(self.inner) if self._agreement else iter(self.inner)
        return self._own(batches, self.digest)

    def __len__(self) -> int:
        whole, rest = divmod(len(self.inner), self.ranks)
        if not rest or self.drop_last:
            return whole
        samples = getattr(self.inner, "sampler", None)  # of a sampler of batches, which can be divided
        if samples is None or getattr(self.inner, "batch_size", None) == 1:
            return whole + (self.rank < rest)
        return whole + (whole > 0 or self.rank < len(samples))

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet
            raise AttributeError(name)
        return getattr(self.inner, name)

    def _own(self, batches: Iterator[Any], digest: OrderDigest) -> Iterator[Any]:
        for number, of_all in enumerate(rounds(batches, self.ranks, self.drop_last), 1):
            digest.note([batch for batch in of_all if batch is not NOTHING])
            if self._agreement and number & (number - 1) == 0:
                self._agreement.compare(str(number), digest.state())
            if of_all[self.rank] is not NOTHING:
                yield of_all[self.rank]
            if self._agreement and of_all[-1] is NOTHING:
                first = next(rank for rank in range(self.ranks) if of_all[rank] is NOTHING)
                events.remark_once(
                    f"{self._agreement.name}: rank {first} and those behind it get one batch less than the others: "
                    "what is left of the stream cannot be divided; drop_last=True leaves it out"
                )
        if self._agreement:
            self._agreement.compare("end", digest.state())


def rounds(batches: Iterator[Any], ranks: int, drop_last: bool) -> Iterator[list[Any]]:
    """The stream in rounds of one batch for each rank.

    Every index is in exactly one batch, but for what `drop_last` leaves out.

    Where the batches do not come out even, the samples of the last rounds are dealt anew, so that no rank has a batch
    more than another, for which it would wait at an all-reduce: one round of smaller batches, or two where there are
    fewer samples left than ranks. What cannot be divided (batch_size=1 or None, a loader with fewer samples than ranks)
    goes to the first ranks.
    """
    held: list[Any] = []
    while len(of_all := list(itertools.islice(batches, ranks))) == ranks:
        if held:
            yield held
        held = of_all
    if not of_all or drop_last:
        last = [held] if held else []
    elif not all(isinstance(batch, list) for batch in held + of_all):
        last = [*([held] if held else []), of_all + [NOTHING] * (ranks - len(of_all))]
    else:
        last = _dealt_anew(held, of_all, ranks)
    yield from last


def _dealt_anew(held: list[Any], rest: list[Any], ranks: int) -> list[list[Any]]:
    left = list(itertools.chain.from_iterable(rest))
    if held and len(left) >= ranks:
        return [held, _parts(left, ranks)]
    if not held:
        return [_parts(left, ranks)]
    both = list(itertools.chain.from_iterable(held)) + left
    if len(both) < 2 * ranks:
        return [held, _parts(left, ranks)]
    parts = _parts(both, 2 * ranks)
    return [parts[:ranks], parts[ranks:]]


def _parts(samples: list[Any], count: int) -> list[Any]:
    each, longer = divmod(len(samples), count)
    ends = list(itertools.accumulate(each + (part < longer) for part in range(count)))
    return [samples[start:end] or NOTHING for start, end in zip([0, *ends], ends)]


def share(loader: DataLoader[Any], rank: int, ranks: int, agreement: Agreement | None) -> None:
    """From now on the loader's index sampler gives this rank's batches only."""
    inner = torchs_index_sampler(loader)
    drop_last = loader.drop_last or getattr(inner, "drop_last", False)
    loader.__dict__[_place_of(loader)] = SharedBatches(inner, rank, ranks, drop_last, agreement)


def unshare(loader: DataLoader[Any]) -> None:
    """Puts the loader's own sampler back, if it is shared."""
    if shared := shared_batches_of(loader):
        loader.__dict__[_place_of(loader)] = shared.inner


def shared_batches_of(loader: DataLoader[Any]) -> SharedBatches | None:
    """What stands in the place of the loader's index sampler; None when it is not shared."""
    sampler = torchs_index_sampler(loader)
    return sampler if isinstance(sampler, SharedBatches) else None


def torchs_index_sampler(loader: DataLoader[Any]) -> Any:
    """What DataLoader says it is, whatever stands before that in the class of a registered loader."""
    return DataLoader._index_sampler.fget(loader)  # type: ignore[attr-defined]


def own_sampler(sampler: Any) -> Any:
    """The loader's own sampler, behind the one that shares it out."""
    return sampler.inner if isinstance(sampler, SharedBatches) else sampler


def _place_of(loader: DataLoader[Any]) -> str:
    return "sampler" if loader.batch_sampler is None else "batch_sampler"
