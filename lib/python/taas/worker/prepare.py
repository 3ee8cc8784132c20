"""What `--loader module:attribute` prepares on data workers before there are ranks: every rank's first epoch.

Each worker imports the loader, draws every rank's index batches, and makes those whose number modulo the workers is its
own. It is a cache by what a rank will ask for: a rank that asks for something else gets that.
"""

from __future__ import annotations

import collections
import itertools
import os
import sys
import time
from typing import Any, Iterator

from torch.utils.data import DataLoader

from ..order import random_states
from ..order.seeds import Seeds, seed_all
from ..order.task import Facts, Task, from_bytes
from ..runtime import events
from ..runtime.plan import Plan
from ..sending import definition, place, state
from ..sending.place import PlaceReads
from ..sending.recipe import recipe_of
from . import prepared_order
from .making import Copies, Copy
from .store import Store
from .worker_info import SeedsRead, notice_initial_seed

_REPORT_EVERY_SECONDS = 0.5
_MOST_SHARED_IN_A_ROW = 4096  # of an endless sampler there is nothing new then


class Preparation:
    """The share of one data worker in all loaders, made batch by batch, of each loader in turn.

    Where a loader cannot be imported the process ends with a line, which the launcher shows.
    """

    def __init__(self, plan: Plan, worker: int) -> None:
        notice_initial_seed()
        place.notice()
        names = plan.loaders()
        loaders = [_imported(name, alone=len(names) == 1) for name in names]  # all first: one may seed the program
        self._worker = worker
        self._loaders = [
            LoaderPreparation(name, loader, ordinal, plan, worker)
            for ordinal, (name, loader) in enumerate(zip(names, loaders))
        ]
        self._by_digest = {loader.digest: loader for loader in self._loaders}
        self._turns = collections.deque(self._loaders)  # those with batches to be made
        self._reported = 0.0
        self.is_done = False
        self._is_end_told = False

    def take(self, digest: str, program: bytes, payload: bytes) -> list[Any] | None:
        """The batch of a rank's task, if its loader is prepared here and has it. `program` is the state there."""
        loader = self._by_digest.get(digest)
        return loader.take(program, payload) if loader else None

    def step(self) -> None:
        """Makes one more batch."""
        loader = self._turns.popleft()
        loader.step()
        if not loader.is_done:
            self._turns.append(loader)
        self.is_done = not self._turns
        now = time.monotonic()
        if self.is_done or now - self._reported >= _REPORT_EVERY_SECONDS:
            self._reported = now
            self.report()

    def report(self) -> None:
        """Tells the launcher, which starts the ranks when all are done.

        The end is told until it got through, and then no more.
        """
        if not self._is_end_told:
            stores = [loader.store for loader in self._loaders]
            batches, size = sum(store.count for store in stores), sum(store.bytes for store in stores)
            told = events.send(
                "prepared", self.is_done, worker=self._worker, batches=batches, bytes=size, done=self.is_done
            )
            self._is_end_told = told and self.is_done


class LoaderPreparation:
    """The share of one data worker in one loader, with an equal part of the memory.

    `ordinal` counts the loaders, as ranks do that register them in the same order.
    """

    def __init__(self, name: str, loader: DataLoader, ordinal: int, plan: Plan, worker: int) -> None:
        self.digest = definition.named(name).digest
        self._worker = worker
        self._workers = max(1, len(plan.workers))
        loaders = plan.loaders()
        self._which = f" of {name}" if len(loaders) > 1 else ""
        of_ranks = plan.buffer_bytes * plan.world_size // self._workers
        self.store = Store(min(of_ranks, _memory_of_one(self._workers)) // len(loaders))
        self._recipe = recipe_of(loader)
        self._copies: Copies | None = Copies(definition.load_of(loader))
        self._made_in = state.captured()
        self._order = prepared_order.of_ranks(loader, ordinal, plan.world_size)
        self._todo = self._tasks()
        self._ended: dict[Any, tuple[Seeds, int, list[Any]]] = {}
        self._shared_in_a_row = 0
        self.is_done = False
        self._is_repeatable: bool | None = None  # not known before the first batch
        self._has_given_up = False

    def take(self, program: bytes, payload: bytes) -> list[Any] | None:
        """The batch of a rank's task, if it was made already and would be the same in the state `program`."""
        differences = state.differences(program, self._made_in)
        if differences and self.store.count and self._worker == 0:
            events.remark_once(
                f"batches{self._which} that were prepared before the ranks started are made again: "
                f"{differences[0]} is not as it was then"
            )
        return None if differences else self.store.take(payload) or self._end_for(payload)

    def _end_for(self, payload: bytes) -> list[Any] | None:
        """What there is for tasks at the end of a shard, and behind it."""
        if not self._ended or (task := from_bytes(payload)).turn < 0:
            return None
        seeds, turn, end = self._ended.get(task.worker, (None, 0, None))
        return end if task.seeds == seeds and task.turn >= turn else None

    def step(self) -> None:
        """Makes one more batch."""
        is_enough = self.store.is_full() or self._shared_in_a_row > _MOST_SHARED_IN_A_ROW
        task = None if is_enough or self._has_given_up else next(self._todo, None)
        if task is None:
            self.is_done, self._copies = True, None
        elif self._copies:
            self._make(task, self._copies)

    def _make(self, task: Task, copies: Copies) -> None:
        payload = task.to_bytes()
        if self.store.shares(payload):
            self._shared_in_a_row += 1
            return
        self._shared_in_a_row = 0
        if self._is_repeatable is None:
            self._is_repeatable = _is_repeatable(task, copies)
            copies.let_go(task.rank, owners={0})
        if task.turn >= 0 and not self._is_repeatable:
            return self._give_up("the dataset gives other samples each time it is read")
        SeedsRead.seen = PlaceReads.seen = False
        copy = copies.copy_for(task)
        copy.enter()
        try:
            buffers = copy.encoded(task)
        except BaseException:  # the rank that asks for it will be told
            buffers = None
        copy.leave()
        if PlaceReads.seen:
            self._give_up("the dataset asks for its rank")  # and there is none yet
        elif buffers and task.turn >= 0 and not Facts.at_end_of(buffers[-1]).samples:
            self._ended[task.worker] = task.seeds, task.turn, buffers
        elif buffers:
            self.store.put(payload, not SeedsRead.seen and self._drew_nothing(task, copy), buffers)

    def _give_up(self, why: str) -> None:
        self._has_given_up = True
        if self._worker == 0:
            events.remark_once(f"nothing{self._which} is prepared before the ranks start: {why}")

    def _drew_nothing(self, task: Task, copy: Copy) -> bool:
        """True when making the batch drew no random number: then its seeds do not matter."""
        if copy.recipe.keeps or copy.has_own_generators or not self._is_repeatable:
            return False
        afterwards = random_states.capture()
        seed_all(task.seeds.of_batch(task.number))
        return random_states.same(afterwards, random_states.capture())

    def _tasks(self) -> Iterator[Task]:
        """This worker's share: the first batches of all ranks first. Shards that have ended are left out."""
        shards, rounds_without = self._recipe.num_workers, 0
        try:
            for tasks in itertools.zip_longest(*self._order()):
                own = [task for task in tasks if task is not None and self._is_own(task) and not self._is_over(task)]
                yield from own
                rounds_without = 0 if own else rounds_without + 1
                if rounds_without > shards + self._workers:
                    return
        except Exception as error:
            if self._worker == 0:
                events.remark_once(
                    f"no more{self._which} is prepared before the ranks start: the sampler raised "
                    f"{type(error).__name__}: {error}"
                )

    def _is_own(self, task: Task) -> bool:
        number = task.place(self._recipe.num_workers) if self._recipe.keeps else task.number
        return number % self._workers == self._worker

    def _is_over(self, task: Task) -> bool:
        return task.turn >= 0 and task.worker in self._ended


def _is_repeatable(task: Task, copies: Copies) -> bool:
    """Whether another copy makes the same batch: draws from the operating system leave no other trace."""
    made = []
    for owner in (1, 2):
        copy = copies.copy_for(task, owner=owner)
        copy.enter()
        try:
            buffers = copy.encoded(task)
        except BaseException:  # it will be raised again
            return True
        finally:
            copy.leave()
        is_stream = task.turn >= 0
        made.append(Facts.at_end_of(buffers[-1]) if is_stream else [bytes(memoryview(each)) for each in buffers])
    return made[0] == made[1]


def _imported(name: str, alone: bool) -> DataLoader:
    try:
        return definition.loader_named(name)
    except Exception as error:
        sys.exit(f"{'' if alone else name + ': '}{type(error).__name__}: {error}")


def _memory_of_one(workers: int) -> int:
    """A worker's part of half the machine's free memory: all of them may be on this machine."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return free // 2 // workers
