"""What belongs to a registered loader, from its registration to its end."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from types import GeneratorType
from typing import Any, Iterator

import torch
from torch.utils.data import DataLoader, IterableDataset

from ..batch.outcome import Failed
from ..code import own_generators, process_bound
from ..code.recipe import recipe_of
from ..dataset.fingerprint import Fingerprint
from ..order import equal_orders, position, sharing
from ..order.common_stream import CommonStream
from ..order.order import MapOrder, order_of
from ..order.sampler_prediction import PredictionBudget, needs_no_state
from ..order.seeds import Seeds
from ..order.shared_batches import shared_batches_of
from ..order.task import Task
from ..runtime import events
from ..runtime.identity import rank, speaks_for_all, variable_of
from ..worker.errors import describe
from .delivery import delivery_for
from .device import on_device
from .feed import Opening
from .loader_iterator import LoaderIterator
from .loop_forks import LoopForks
from .passed_on import PassedOn
from .prefetch import Prefetch
from .progress import Progress, Totals
from .report import loader_at

_tokens = itertools.count()


class Registered:
    """Knows a loader's epochs, where its batches come from and where they go. Does not keep the loader alive."""

    def __init__(self, loader: DataLoader, ordinal: int, epoch: int, device: torch.device | None = None) -> None:
        self.device = device
        self.asked_for: dict[str, Any] = {}
        self.ranks = 0
        """How many ranks share the loader; 0 when it is not shared."""
        self.common_stream: CommonStream | None = None
        """What they share of an iterable dataset."""
        self.fingerprint = Fingerprint()
        self.totals = Totals()
        self.token = next(_tokens)
        self._loader = weakref.ref(loader)
        self.ordinal = ordinal
        self.epoch = epoch
        self._budget = PredictionBudget()
        self._prefetched = Prefetch()
        self._opened: Opening | None = None  # for the last loop
        self._was_looked_at = False  # since the last loop ended
        self._has_compared = False  # what the dataset was when a loop began and when it ended
        self.has_begun = False
        """A loop over it, that is."""
        self._current: weakref.ref[LoaderIterator] | None = None
        self._progress: Progress | None = None
        self._passed_on: PassedOn | None = None
        self._resume: dict[str, Any] | None = None
        self._thread = threading.get_ident()  # whose random states a loop's draws are
        self._process = os.getpid()
        self._delivery = delivery_for(loader)
        self.name = self._delivery.name_for(loader) or variable_of(loader) or f"loader {ordinal}"
        self._release = weakref.finalize(self, self._delivery.release, self.token)
        self._release.atexit = False

    def is_of(self, loader: Any) -> bool:
        """False for a copy of the loader, which has copied this attribute."""
        return self._loader() is loader

    def prepare(self, loader: DataLoader) -> None:
        """Called once the loader is registered: where workers are there already, they begin."""
        if self._delivery.prefetches:
            self._prefetch(loader, is_first=True)

    def iterate(self, loader: DataLoader) -> LoaderIterator:
        """A new loop."""
        if loader.persistent_workers and self._current and (current := self._current()):
            current.close()
        iterator = LoaderIterator(self, loader)
        self._current = weakref.ref(iterator)
        if self._passed_on and self._progress:
            self._passed_on.begins(self._state_in(self._progress))
        return iterator

    def followed(self, batches: Iterator[Any]) -> Iterator[Any]:
        """What an __iter__ of the loader's class gave.

        Only generators are followed: other objects may have methods of their own.
        """
        self._passed_on = None
        if not isinstance(batches, GeneratorType):
            return batches
        self._passed_on = PassedOn(self.name, self.state_dict())
        return self._passed_on.followed(batches)

    def gave(self, batch: Any, progress: Progress) -> None:
        """The loop's next batch goes to the program, or to an __iter__ of the loader's class."""
        if self._passed_on:
            self._passed_on.given(batch, self._state_in(progress))

    def begin_epoch(self, loader: DataLoader) -> Progress:
        """Makes the plain loader's draws of iter(), and opens a stream."""
        if os.getpid() != self._process and not isinstance(self._delivery, LoopForks):
            raise RuntimeError(
                f"taas: {self.name}: this loop is in a fork of the process that registered the loader, which has the "
                "data workers: call taas.unregister(loader) in the fork first, or register it there"
            )
        resume, self._resume = self._resume, None
        self._thread = threading.get_ident()
        self._prefetched.notice(loader)
        if resume:
            self._refuse_what_is_in_no_state(loader)
        self._tell_of_own_generators(loader)
        if self.ranks:
            sharing.check(self.name, self.ranks)
        if shared := shared_batches_of(loader):
            shared.begin_loop()
        with position.as_at_the_start(loader, resume):
            start = position.start_of(loader)
            stream = self.common_stream
            seeds = stream.begin_loop(self._seeds(loader)) if stream else self._seeds(loader)
            order = order_of(loader, seeds, self._budget, self._is_resumed(loader), stream.dealing if stream else None)
            self._stay_where_it_must(loader)
            opening = self._opening(loader)
            if not self._was_looked_at:  # else what is new now was changed between the loops
                self._tell_of_a_change(loader)
            self._opened, self._was_looked_at = opening, False
            self.has_begun = True
            self.fingerprint.begins(loader)
            order.begin()
            if resume:
                order.skip_to(resume["position"])
        feed = self._prefetched.feed(order, opening)
        progress = Progress(self.epoch, order, feed, start, self.totals)
        progress.shared = self.common_stream
        progress.enough = self._delivery.samples_wanted
        progress.batch_size = loader.batch_size or 1
        progress.digest = resume["digest"] if resume else 0
        self.epoch += 1
        self._progress = progress
        return progress

    def _refuse_what_is_in_no_state(self, loader: DataLoader) -> None:
        """In the middle of a loop, that is: a dataset as it is made begins its own iterators anew."""
        if not isinstance(loader.dataset, IterableDataset) and (kind := process_bound.iterator_in(loader.dataset)):
            raise ValueError(
                f"taas: load_state_dict: the dataset holds a {kind}, and how far that was is not in the state: load a "
                "state of the end of a loop, or take samples by their index"
            )

    def prefetch_next(self, progress: Progress) -> None:
        """All of a loop is under way: workers go on with the next one, where that can be told already. Called often."""
        if progress.has_prefetched or progress.enough or not self._delivery.prefetches:
            return
        progress.has_prefetched = True
        loader = self._loader()
        if loader is not None and needs_no_state(loader):
            self._prefetch(loader, is_first=False)

    def end_epoch(self, progress: Progress) -> None:
        """The loop has had its last batch."""
        if self._progress is progress:
            self._progress = None
        if progress.is_enough() and speaks_for_all():
            events.remark_once(
                f"{self.name}: {self.totals.samples} samples were taken, in whole batches, as asked for with --units: "
                "the loop ends"
            )
        self.report(progress, done=True)
        loader = self._loader()
        if loader is not None and not progress.epoch and isinstance(progress.order, MapOrder):
            equal_orders.tell(loader, self.name, progress.order.digest())
        if loader is not None and not progress.is_enough():
            self._prefetch(loader, is_first=False)

    def skips(self, failed: Failed, task: Task) -> bool:
        """True when --data-on-error says that batches which cannot be made are left out."""
        if self._delivery.on_error != "skip":
            return False
        self.totals.skipped += 1
        events.remark(
            f"{self.name}: {describe(task)} is skipped ({self.totals.skipped} so far): "
            f"{failed.where} raised {type(failed.error).__name__}: {failed.error}"
        )
        return True

    def waits(self, task: Task, seconds: float, workers: int) -> None:
        """The loop has stood still for so long."""
        asked = "the data worker is" if workers == 1 else f"the {workers} data workers are"
        why = f"{asked} slow, or cannot be reached" if workers else "there is no data worker"
        events.remark(f"{self.name}: {describe(task)} has not come for {seconds:.0f} s; {why}")

    def state_dict(self) -> dict[str, Any]:
        """Of the loop under way; without one, of the loop to come."""
        passed_on = self._passed_on
        if passed_on and not passed_on.has_ended:
            return passed_on.state()
        return (
            {"taas": 1, "epoch": self.epoch} if passed_on or self._progress is None else self._state_in(self._progress)
        )

    def _state_in(self, progress: Progress) -> dict[str, Any]:
        return {
            "taas": 1,
            "epoch": progress.epoch,
            "position": progress.order.position(),
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

    def close(self) -> None:
        """The loader is unregistered: workers that nobody needs go."""
        self._prefetched.close()
        if 0 < self.totals.samples < self._delivery.samples_wanted and speaks_for_all():
            events.remark(
                f"{self.name}: {self.totals.samples} of the {self._delivery.samples_wanted} samples that --units "
                "asks of this rank were taken: the loops over it ended before"
            )
        self._release()

    def _prefetch(self, loader: DataLoader, is_first: bool) -> None:
        if isinstance(loader.dataset, IterableDataset):  # what it reads may be gone then: a queue, a connection
            return
        if (
            not self._prefetched.is_open
            or not self._delivery.count()
            or self._resume
            or threading.get_ident() != self._thread
        ):
            return
        try:
            opening = self._expected_opening(loader)
        except TypeError:  # cannot be sent: the loop will say so
            return
        self._was_looked_at = True
        if (
            opening.shares_memory
        ):  # where the program may tell of the next epoch, and workers may keep what they have seen
            return
        self._prefetched.ask(
            loader, self._seeds(loader), opening, self._delivery.count(), self._is_resumed(loader), is_first
        )

    def _expected_opening(self, loader: DataLoader) -> Opening:
        """Of the next loop, as if nothing had changed since the last one began: that is looked at when it begins.

        After the first loop it is looked at here as well, to tell a change in the loop from one behind it.
        """
        if self._opened and (loader.num_workers or self._has_compared):
            return self._opened
        self._has_compared = self._opened is not None
        opening = self._opening(loader)
        self._tell_of_a_change(loader)
        return opening

    def _stay_where_it_must(self, loader: DataLoader) -> None:
        """With num_workers up to 1 the loader's code may count on being in one process.

        A stream is read by one for each worker.
        """
        if not self._delivery.is_forked or loader.num_workers > 1 or isinstance(loader.dataset, IterableDataset):
            return
        for part in ("dataset", "collate_fn"):
            if kind := process_bound.found_in(getattr(loader, part), but=loader):
                events.remark_once(
                    f"{self.name}: its {part} holds a {kind}, which only one process can use: from now on one fork of "
                    "the training process makes its batches"
                )
                self._delivery = LoopForks.in_the_place_of(self._delivery)
                return

    def _tell_of_a_change(self, loader: DataLoader) -> None:
        """Within the process the last loop would have seen it, from the next batch on."""
        if not loader.num_workers and self.fingerprint.has_just_changed:
            events.remark_once(
                f"{self.name}: its dataset has been changed since the last loop over it began: that loop has not seen "
                "it, and the next one does, as with num_workers=1"
            )

    def _opening(self, loader: DataLoader) -> Opening:
        opening = self._delivery.opener(self, loader)
        return on_device(opening, self.device) if self.device else opening

    def _tell_of_own_generators(self, loader: DataLoader) -> None:
        recipe = recipe_of(loader)
        if self.epoch == 0 and not recipe.iterable and speaks_for_all() and own_generators.found_in(recipe):
            events.remark_once(
                f"{self.name}: its dataset has random generators of its own: they are seeded for each batch, as "
                "torch's, numpy's and random's are, so that a batch does not depend on who makes it"
            )

    def _is_resumed(self, loader: DataLoader) -> bool:
        return loader.persistent_workers and self.epoch > 0

    def _seeds(self, loader: DataLoader) -> Seeds:
        initial = loader.generator.initial_seed() if loader.generator is not None else torch.initial_seed()
        return Seeds(initial & 0xFFFFFFFFFFFFFFFF, rank(), self.ordinal, self.epoch)

    def report(self, progress: Progress, done: bool = False, is_left: bool = False) -> None:
        """Tells the launcher, now and then, and when a loop ends or is left."""
        loader_at(self.name, progress, done, is_left)
