"""All ranks draw what rank 0 draws: it says from which random states, and everybody compares what came of it."""

from __future__ import annotations

import base64
import io
import itertools
import os
import sys
import weakref
from datetime import timedelta
from typing import Any, Iterator

import torch
from torch.utils.data import DataLoader

from ..runtime import events
from ..sending import place
from . import position, random_states
from .draws import drawn_freely
from .seeds import Seeds
from .task import Dealing, Task

_PATIENCE = timedelta(seconds=30)
_END = object()
_shared_before = itertools.count()


class UnequalOrder(RuntimeError):
    """A rank has drawn another order than another one, so that samples would be missing, or come twice."""


class NoMeetingPlace(RuntimeError):
    """There is no store through which the ranks could agree."""


class CommonOrder:
    """The order of one shared loader's loops, in one rank.

    Shared loaders and their loops are counted: all ranks have the same ones.
    """

    def __init__(self, loader: DataLoader[Any], name: str, rank: int) -> None:
        self.name = name
        self._loader = weakref.ref(loader)
        self._place = next(_shared_before)
        self._rank = rank
        self._loop = -1
        self._store: Any = None

    def begin_loop(self) -> None:
        """One more loop. Raises NoMeetingPlace."""
        self._loop += 1
        if self._store is None:
            self._store = meeting_place("shared")
        if self._rank == 0 and self._loop > 1:
            self._forget(self._loop - 2)

    def batches(self, sampler: Any) -> Iterator[Any]:
        """Those that `sampler` draws in rank 0, at the same instants there as without sharing.

        Elsewhere nothing is drawn from the process' own random states.
        """
        return self._said(sampler) if self._rank == 0 else self._followed(sampler)

    def compare(self, where: str, drawn: tuple[int, int]) -> None:
        """Raises UnequalOrder when another rank has drawn something else until this place in the stream."""
        if (other := self._another(where, f"{drawn[0]} {drawn[1]}")) is not None:
            raise UnequalOrder(
                f"taas: rank {self._rank} draws another order for {self.name} than rank {other}, so its batches cannot "
                "be shared: the dataset, the sampler or its seeds differ between the ranks, or the sampler draws from "
                "random states that the program draws from as well: give it a torch.Generator of its own, with the "
                "same seed in all ranks"
            )

    def compare_samples(self, where: str, read: str) -> None:
        """The same for the samples of an iterable dataset."""
        if (other := self._another(where, read)) is not None:
            raise UnequalOrder(
                f"taas: rank {self._rank} reads other samples of {self.name} than rank {other}, so they cannot be "
                "shared: the dataset differs between the ranks, or draws from generators without a seed, or its "
                "__iter__ gives each rank a part already: leave that to shared=True, or leave shared out"
            )

    def agreed(self, own: str) -> str:
        """What rank 0 has said for this loop: its `own`."""
        if self._rank == 0:
            self._store.set(self._key("start"), own)
            return own
        return self._what_rank_0_says()

    def _another(self, where: str, own: str) -> str | None:
        """A rank that has said something else about this place in the loop."""
        first, _, rank = self._store.compare_set(self._key(where), "", f"{own} {self._rank}").decode().rpartition(" ")
        return None if first == own else rank

    def _said(self, sampler: Any) -> Iterator[Any]:
        before, start = random_states.capture(), position.start_of(self._its_loader())
        iterator = iter(sampler)
        has_drawn = not random_states.same(before, random_states.capture())
        return self._saying(iterator, start if has_drawn else None)

    def _saying(self, iterator: Iterator[Any], start: dict[str, Any] | None) -> Iterator[Any]:
        self._store.set(self._key("start"), _text_of(start or position.start_of(self._its_loader())))
        yield from iterator

    def _followed(self, sampler: Any) -> Iterator[Any]:
        start = _start_from(self._what_rank_0_says())
        with position.as_at_the_start(self._its_loader(), {"start": start}):
            iterator = iter(sampler)
            batch = next(iterator, _END)
            states = random_states.capture()
        is_settled = drawn_freely(sampler) == sys.maxsize
        while batch is not _END:
            yield batch
            if is_settled:
                batch = next(iterator, _END)
                continue
            with random_states.kept():
                random_states.restore(states)
                batch = next(iterator, _END)
                states = random_states.capture()

    def _what_rank_0_says(self) -> str:
        waited = 0.0
        while True:
            try:
                self._store.wait([self._key("start")], _PATIENCE)
                return str(self._store.get(self._key("start")).decode())
            except torch.distributed.DistStoreError:
                waited += _PATIENCE.total_seconds()
                events.remark(
                    f"{self.name}: rank {self._rank} has waited {waited:.0f} s for rank 0 to begin its loop over this "
                    "loader, which all ranks share"
                )

    def _its_loader(self) -> DataLoader[Any]:
        loader = self._loader()
        assert loader is not None  # its own sampler is asked
        return loader

    def _key(self, what: str, loop: int | None = None) -> str:
        return f"{self._place}/{self._loop if loop is None else loop}/{what}"

    def _forget(self, loop: int) -> None:
        self._store.delete_key(self._key("start", loop))


class CommonStream:
    """An iterable dataset whose batches are dealt over the ranks, in one rank.

    Each logical worker's shard is dealt by itself, by whoever reads it: see worker.dealt_shard. The ranks read with the
    same seeds, and compare what they have read.
    """

    def __init__(self, dealing: Dealing, agreement: CommonOrder) -> None:
        self.dealing = dealing
        self._agreement = agreement

    def begin_loop(self, own: Seeds) -> Seeds:
        """The seeds of one more loop: those of rank 0. `own` are what this rank would have by itself."""
        self._agreement.begin_loop()
        initial, _, ordinal, epoch = map(int, self._agreement.agreed(" ".join(map(str, own))).split())
        return Seeds(initial, 0, ordinal, epoch)

    def read(self, task: Task, digest: int, is_end: bool) -> None:
        """Compares digests of all samples that were read for this task. Raises UnequalOrder."""
        batches = task.turn + 1
        if is_end or batches & (batches - 1) == 0:
            self._agreement.compare_samples(f"{task.logical_worker}/{'end' if is_end else batches}", str(digest))


def meeting_place(purpose: str) -> Any:
    """The group's store, or the launcher's, for keys of one purpose and of this generation of ranks.

    Raises NoMeetingPlace.
    """
    from torch._C._distributed_c10d import PrefixStore, TCPStore

    if place.group():
        store: Any = torch.distributed.distributed_c10d._get_default_store()
    elif os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        store = TCPStore(
            os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, wait_for_workers=False
        )
    else:
        raise NoMeetingPlace(
            "taas: ranks that share a loader have no store to agree through: call "
            "torch.distributed.init_process_group before the first loop"
        )
    return PrefixStore(f"taas/{purpose}/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


def _text_of(start: dict[str, Any]) -> str:
    file = io.BytesIO()
    torch.save(start, file)
    return base64.b64encode(file.getvalue()).decode()


def _start_from(text: str) -> dict[str, Any]:
    start: dict[str, Any] = torch.load(io.BytesIO(base64.b64decode(text)), weights_only=True)
    return start
