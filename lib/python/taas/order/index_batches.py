"""What stands before a registered loader's index sampler: it notes what is drawn, and gives this rank's part of it."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any, Callable, Iterator

from torch.utils.data import DataLoader, Sampler

from ..runtime import events
from .order_digest import OrderDigest

if TYPE_CHECKING:
    from .common_order import CommonOrder

NOTHING = object()
"""In the place of a batch: there is none for this rank."""


class IndexBatches(Sampler[Any]):
    """Gives those of the batches of `inner`, the loader's own sampler, that are this rank's.

    Rank r has the batches r, r + ranks, r + 2 * ranks … of the stream, and all ranks have the same number of them: see
    `rounds`. Everything else that is asked of it is asked of `inner`.
    """

    def __init__(
        self,
        inner: Any = None,
        rank: int = 0,
        ranks: int = 1,
        drop_last: bool = False,
        agreement: CommonOrder | None = None,
    ) -> None:
        """Without an agreement nothing is communicated."""
        self.inner = inner
        self.rank = rank
        self.ranks = ranks
        self.drop_last = drop_last
        self.agreement = agreement
        self.digest = OrderDigest()
        """Of what was asked for last, over all ranks' batches: the same in all of them."""
        self._instead: Callable[[], Iterator[Any]] | None = None

    @contextlib.contextmanager
    def instead(self, begin: Callable[[], Iterator[Any]]) -> Iterator[None]:
        """Inside, iter() gives what `begin` returns."""
        self._instead = begin
        try:
            yield
        finally:
            self._instead = None

    def __iter__(self) -> Iterator[Any]:
        return self._instead() if self._instead else self.drawn()

    def drawn(self) -> Iterator[Any]:
        """The batches, once more."""
        self.digest = digest = OrderDigest()
        batches = self.agreement.batches(self.inner) if self.agreement else iter(self.inner)
        return self._own(batches, digest) if self.ranks > 1 else map(digest.noted, batches)

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
            digest.noted([batch for batch in of_all if batch is not NOTHING])
            if self.agreement and number & (number - 1) == 0:
                self.agreement.compare(str(number), digest.state())
            if of_all[self.rank] is not NOTHING:
                yield of_all[self.rank]
            if self.agreement and of_all[-1] is NOTHING:
                first = next(rank for rank in range(self.ranks) if of_all[rank] is NOTHING)
                events.remark_once(
                    f"{self.agreement.name}: rank {first} and those behind it get one batch less than the others: "
                    "what is left of the stream cannot be divided; drop_last=True leaves it out"
                )
        if self.agreement:
            self.agreement.compare("end", digest.state())


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


def torchs_index_sampler(loader: DataLoader[Any]) -> Any:
    """What DataLoader says it is, whatever stands before that in the class of a registered loader."""
    return DataLoader._index_sampler.fget(loader)  # type: ignore[attr-defined]


def share(loader: DataLoader[Any], rank: int, ranks: int, agreement: CommonOrder) -> IndexBatches:
    """What gives this rank's batches from now on. It is in the loader's attribute, too, which its class may read."""
    inner = torchs_index_sampler(loader)
    drop_last = loader.drop_last or getattr(inner, "drop_last", False)
    shared = IndexBatches(inner, rank, ranks, drop_last, agreement)
    loader.__dict__["sampler" if loader.batch_sampler is None else "batch_sampler"] = shared
    return shared


def own_sampler(sampler: Any) -> Any:
    """The loader's own sampler, behind the one that shares it out."""
    return sampler.inner if isinstance(sampler, IndexBatches) else sampler
