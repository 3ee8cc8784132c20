"""What belongs to a registered loader, from its registration to its end."""

from __future__ import annotations

import math
import os
import secrets
import weakref
from typing import Any, Callable

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from ..order import position, sharing
from ..order.common_order import CommonOrder, CommonStream
from ..order.index_batches import IndexBatches, share, torchs_index_sampler
from ..order.order import MapOrder, ShardOrder, order_of
from ..order.seeds import Seeds
from ..order.task import Dealing, Task
from ..runtime import events
from ..runtime.identity import rank, speaks_for_all, variable_of
from ..sending.definition import Sending
from ..sending.modules import stored_by
from . import plain_loader, run_workers
from .loop import Loop
from .outcome import Failed
from .plain_loader import PlainLoop, PlainPlace
from .progress import Place, Progress, Totals
from .remote import RemoteStream


_SHUFFLED = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)


class OwnIteration:
    """Of a loader whose class iterates by itself: where that asks torch's DataLoader for nothing, nobody stands in."""

    def __init__(self, name: str) -> None:
        self.by = ""
        self.is_asked = False
        self._name = name

    def tell(self) -> None:
        """Once, where a loop has been gone through."""
        if self.by and not self.is_asked and speaks_for_all():
            events.remark_once(
                f"{self._name}: its batches came from the plain loader: {self.by} does not ask torch's DataLoader"
            )


class Registered:
    """Knows a loader's epochs, where its batches come from and where they go. Does not keep the loader alive."""

    def __init__(
        self, loader: DataLoader, ordinal: int, epoch: int, device: torch.device | None, is_shared: bool
    ) -> None:
        self.device = device
        self.asked_for: dict[str, Any] = {}
        self.token = secrets.randbits(64)
        """Names the registration, among those of all processes."""
        self._loader = weakref.ref(loader)
        self.ordinal = ordinal
        self.epoch = epoch
        self._current: weakref.ref[Loop] | None = None
        self._progress: Progress | None = None
        self._resume: dict[str, Any] | None = None
        self._process = os.getpid()
        self._workers = run_workers.connected()
        plan = run_workers.plan()
        self._on_error = plan.on_error if plan else "raise"
        self._samples_wanted = -(-plan.units // max(1, plan.world_size)) if plan else 0
        imported = self._workers.named(loader) if self._workers else ""
        self.name = imported.partition(":")[2] or variable_of(loader) or f"loader {ordinal}"
        self.totals = Totals(self.name)
        own, count = sharing.place_of_rank() if is_shared else (0, 1)
        agreement = CommonOrder(loader, self.name, own) if count > 1 else None
        self.ranks = count if is_shared else 0
        """How many ranks share the loader; 0 when it is not shared."""
        self.index_batches: IndexBatches | None = None
        """What stands before the index sampler. None where the dataset has no indices."""
        self.common_stream: CommonStream | None = None
        """What ranks share of an iterable dataset."""
        if not isinstance(loader.dataset, IterableDataset):
            self.index_batches = share(loader, own, count, agreement) if agreement else IndexBatches()
        elif agreement:
            self.common_stream = CommonStream(Dealing(own, count), agreement)
        if self._workers:
            self.sending = Sending(loader, imported, self.name)
            self._release = weakref.finalize(self, self._workers.release, self.token)
            self._release.atexit = False
        else:
            loader._iterator = None  # of persistent workers, which would go on uncounted
        self._own_iteration = OwnIteration(self.name)
        self._tell_at_the_end = weakref.finalize(self, self._own_iteration.tell)

    def is_of(self, loader: Any) -> bool:
        """False for a copy of the loader, which has copied this attribute."""
        return self._loader() is loader

    @property
    def has_workers(self) -> bool:
        """Data workers, that is."""
        return self._workers is not None

    def iterate(self, loader: DataLoader, torchs: Callable[[], Any]) -> Loop | PlainLoop:
        """A new loop. `torchs` makes torch's own iterator."""
        self._own_iteration.is_asked = True
        if self._workers is None:
            return PlainLoop(self, loader, torchs, self.device)
        if loader.persistent_workers and self._current and (current := self._current()) is not None:
            current.close()
        iterator = Loop(self, loader)
        self._current = weakref.ref(iterator)
        return iterator

    def is_iterated(self, by: str) -> None:
        """A loop begins, `by` a method of the loader's class: it may ask torch's DataLoader for batches, or not."""
        if self._workers or self.ranks > 1:
            self._own_iteration.tell()
            self._own_iteration.by = by

    def begin_plain(self, loader: DataLoader, torchs: Callable[[], Any]) -> tuple[Progress, PlainPlace, Any]:
        """A loop over torch's own iterator."""
        resume = self._resume
        self._begin_shared()
        try:
            place, start, batches = plain_loader.begin(self.index_batches, loader, torchs, resume)
        except BaseException:
            if resume:
                loader._iterator = None  # of persistent workers: it stands somewhere
            raise
        self._resume = None
        return self._progress_of(loader, place, place.statistics, start, resume), place, batches

    def begin_epoch(self, loader: DataLoader) -> tuple[Progress, MapOrder | ShardOrder, RemoteStream]:
        """Makes the plain loader's draws of iter(), and opens a stream."""
        assert self._workers
        if os.getpid() != self._process:
            raise RuntimeError(
                f"taas: {self.name}: this loop is in a fork of the process that registered the loader, which has the "
                "data workers: call taas.unregister(loader) in the fork first, or register it there"
            )
        resume = self._resume
        self._tell_of_what_is_stored(loader)
        self._begin_shared()
        with position.as_at_the_start(loader, resume):
            start = position.start_of(loader)
            start["goes_on"] = self._goes_on(loader, resume)
            common = self.common_stream
            seeds = common.begin_loop(self._seeds(loader)) if common else self._seeds(loader)
            order = order_of(loader, seeds, start["goes_on"], common)
            self._tell_of_the_window(loader, order.window, self._workers.count())
            opening = self._workers.opening(self, loader)
            self._tell_of_own_generators()
            if resume:
                position.return_to_first_draw(resume["start"])
            order.begin()
            if resume:
                order.skip_to(resume["position"])
        stream = opening()
        self._resume = None
        return self._progress_of(loader, order, stream.statistics, start, resume), order, stream

    def _begin_shared(self) -> None:
        if self.ranks:
            sharing.check(self.name, self.ranks)
        if self.index_batches is not None and self.index_batches.agreement:
            self.index_batches.agreement.begin_loop()

    def _progress_of(
        self,
        loader: DataLoader,
        place: Place,
        statistics: Callable[[], dict[str, int]],
        start: dict[str, Any],
        resume: dict[str, Any] | None,
    ) -> Progress:
        """Of the loop that begins, which is the loader's current one from now on."""
        progress = Progress(self.epoch, place, statistics, start, self.totals)
        progress.enough = self._samples_wanted
        progress.batch_size = loader.batch_size or 1
        progress.in_batches = loader.batch_sampler is not None
        progress.digest = resume["digest"] if resume else 0
        self.epoch += 1
        self._progress = progress
        return progress

    def end_epoch(self, progress: Progress) -> None:
        """The loop has had its last batch."""
        if self._progress is progress:
            self._progress = None
        if progress.is_enough() and speaks_for_all():
            events.remark_once(
                f"{self.name}: {self.totals.samples} samples were taken, in whole batches, as asked for with --units: "
                "the loop ends"
            )
        progress.report(done=True)
        loader = self._loader()
        if loader is not None and not progress.epoch and (digest := progress.place.digest()):
            self._tell_of_a_shuffled_order(loader, digest)

    def skips(self, failed: Failed, task: Task) -> bool:
        """True when --data-on-error says that batches which cannot be made are left out."""
        return self._skips(str(task), f"{failed.where} raised {_of(failed.error)}")

    def skips_plain(self, error: Exception, progress: Progress, number: int) -> bool:
        """The same without data workers."""
        return self._skips(f"batch {number} of epoch {progress.epoch}", f"the dataset raised {_of(error)}")

    def _skips(self, batch: str, why: str) -> bool:
        if self._on_error != "skip":
            return False
        self.totals.skipped += 1
        events.remark(f"{self.name}: {batch} is skipped ({self.totals.skipped} so far): {why}")
        return True

    def waits(self, task: Task, seconds: float, workers: int) -> None:
        """The loop has stood still for so long."""
        asked = "the data worker is" if workers == 1 else f"the {workers} data workers are"
        why = f"{asked} slow, or cannot be reached" if workers else "there is no data worker"
        events.remark(f"{self.name}: {task} has not come for {seconds:.0f} s; {why}")

    def state_dict(self) -> dict[str, Any]:
        """Of the loop under way; without one, of the loop to come."""
        progress = self._progress
        if self._resume:
            return self._resume
        if progress is None:
            return {"taas": 1, "epoch": self.epoch}
        loader = self._loader()
        if (
            self._workers is None
            and loader is not None
            and loader.num_workers
            and not getattr(loader, "in_order", True)
        ):
            raise ValueError(
                "taas: state_dict: with in_order=False nobody knows which batches the loop has had: save the state at "
                "the end of a loop, or give the loader in_order=True"
            )
        return {
            "taas": 1,
            "epoch": progress.epoch,
            "position": progress.place.position(),
            "digest": progress.digest,
            "samples": self.totals.samples,
            "start": progress.start,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises ValueError for something that state_dict has not made."""
        if not isinstance(state, dict) or state.get("taas") != 1:
            raise ValueError("load_state_dict: this is not the state of a registered loader of this release of taas")
        self.epoch = state["epoch"]
        self.totals.samples = state.get("samples", self.totals.samples)
        self._resume = state if "position" in state else None
        self._progress = None
        if (loader := self._loader()) is not None:
            loader._iterator = None  # of persistent workers

    def close(self) -> None:
        """The loader is unregistered."""
        if 0 < self.totals.samples < self._samples_wanted and speaks_for_all():
            events.remark(
                f"{self.name}: {self.totals.samples} of the {self._samples_wanted} samples that --units "
                "asks of this rank were taken: the loops over it ended before"
            )
        self._tell_at_the_end()
        if self._workers:
            self._release()

    def _tell_of_a_shuffled_order(self, loader: DataLoader, digest: str) -> None:
        """Where eight ranks have the same, they do the work of one: taas-run compares what they tell."""
        facts = getattr(torch, "_taas_training_facts", None)  # of a preloaded rank
        sampler = torchs_index_sampler(loader)
        sampler = sampler.sampler if type(sampler) is BatchSampler else sampler
        if facts is not None and self.ranks <= 1 and isinstance(sampler, _SHUFFLED):
            facts.shuffled(self.name, digest)

    def _tell_of_own_generators(self) -> None:
        if self.epoch == 0 and self.sending.has_generators and speaks_for_all():
            events.remark_once(
                f"{self.name}: its dataset has random generators of its own: they are seeded for each batch, as "
                "torch's, numpy's and random's are, so that a batch does not depend on who makes it"
            )

    def _tell_of_what_is_stored(self, loader: DataLoader) -> None:
        is_first = self.epoch == 0 and speaks_for_all()
        if is_first and (names := stored_by(loader.worker_init_fn)):
            events.remark_once(
                f"{self.name}: worker_init_fn stores {', '.join(names)} in its module, which a data worker has once "
                "for all loaders and workers that it stands in for: keep it in get_worker_info().dataset"
            )

    def _tell_of_the_window(self, loader: DataLoader, window: int | None, workers: int) -> None:
        """Once, where torch has fewer batches under way than would keep the data workers busy."""
        if window and window < min(2 * workers, _length_of(loader)) and speaks_for_all():
            events.remark_once(
                f"{self.name}: its sampler is drawn as torch draws it, {window} batches ahead (prefetch_factor="
                f"{window // max(1, loader.num_workers)} x num_workers={max(1, loader.num_workers)}): larger numbers "
                f"keep {workers} data workers busy"
            )

    def _goes_on(self, loader: DataLoader, resume: dict[str, Any] | None = None) -> bool:
        """Whether the plain loader's persistent workers would have had a loop before."""
        if resume:
            return bool(resume["start"].get("goes_on"))
        return loader.persistent_workers and self.epoch > 0

    def _seeds(self, loader: DataLoader) -> Seeds:
        return Seeds.of_loader(loader, rank(), self.ordinal, self.epoch)


def _length_of(loader: DataLoader) -> float:
    try:
        return len(loader)
    except Exception:  # unknown, or endless
        return math.inf


def _of(error: BaseException) -> str:
    """In one line: what came from a worker process of torch has its traceback before it."""
    lines = str(error).splitlines()
    return lines[-1] if len(lines) > 1 else f"{type(error).__name__}: {error}"
