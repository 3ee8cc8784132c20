"""The kill test: workers die all the time, and nothing is lost, doubled or in another order. 50 for each kind of loop.

Among the datasets are those that depend on who makes a batch: on the order of a set of strings, on the rank's variables
and on its process group.
"""

import itertools
import os
import random
import signal
import time
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from conftest import seed, wait_until
from differential.looks import looks_of
from pipelines import collates, everyday, iterables
from taas import register
from test_shared_streams import Together
from torch.utils.data import DataLoader, get_worker_info

DEATHS = 50
BATCHES = 4 * DEATHS + 20  # not all are under way when the last worker dies
BUFFER_BYTES = 128 << 10
CARGO = torch.zeros(1 << 10)
"""Of each sample: no batch is a small one then, and no more than 12 are under way for three workers."""


class Slowly:
    """The workers are behind the loop, so that a death takes a batch with it."""

    def __iter__(self):
        for row in super().__iter__():
            time.sleep(0.0005)
            yield row, CARGO


class SlowByVariables(Slowly, iterables.RankedByVariables):
    pass


class SlowByGroup(Slowly, iterables.RankedByGroup):
    pass


def words(index):
    time.sleep(0.0005)
    chosen = {f"word {number} of {index}" for number in range(40)}
    return list(chosen)[:3], random.random(), CARGO.clone()


def by_hash():
    with register(
        DataLoader(everyday.Made(words, 4 * BATCHES), 4, shuffle=True, num_workers=3, collate_fn=list)
    ) as own:
        yield from own


def mixed_up(rows):
    time.sleep(0.002)
    return collates.mixed_up(rows), [CARGO.clone() for _ in rows]


def by_random_numbers():
    made = everyday.Made(collates.text, 4 * BATCHES)
    with register(DataLoader(made, 4, shuffle=True, num_workers=2, collate_fn=mixed_up)) as loader:
        yield from loader


def draw_offset(worker):
    get_worker_info().dataset.offset = worker, random.random()


class Offset(everyday.Made):
    def __getitem__(self, index):
        return self.offset, super().__getitem__(index)


def by_worker_init_fn():
    """Each logical worker has a copy of the dataset."""
    made = Offset(words, 4 * BATCHES)
    with register(DataLoader(made, 4, num_workers=3, collate_fn=list, worker_init_fn=draw_offset)) as loader:
        yield from loader


def by_variables():
    iterables.be_rank(2, 3)
    with register(DataLoader(SlowByVariables(12 * BATCHES), 4, num_workers=2)) as loader:
        yield from loader


def by_group():
    iterables.be_rank(1, 2)
    iterables.join_group(1, 2)
    try:
        with register(DataLoader(SlowByGroup(11 * BATCHES), 4, num_workers=2)) as loader:
            yield from loader
    finally:
        dist.destroy_process_group()


class Slow(Slowly, iterables.Worked):
    pass


def with_persistent_workers():
    with register(DataLoader(Slow(BATCHES * 4 // 3 + 1), 4, num_workers=2, persistent_workers=True)) as loader:
        for _ in range(3):
            yield from loader


def resumed():
    """Every 20 batches by another loop, over a stream and over indices in turn."""
    of_indices = DataLoader(everyday.Made(words, 2 * BATCHES), 4, shuffle=True, num_workers=2, collate_fn=list)
    for loader in (DataLoader(Slow(2 * BATCHES), 4, num_workers=2), of_indices):
        with register(loader):
            count = 20
            while count == 20:
                count = 0
                for count, batch in enumerate(itertools.islice(loader, 20), 1):
                    yield batch
                loader.load_state_dict(loader.state_dict())


def shared():
    """A stream by two ranks, in one process."""
    together, loops = Together(), []
    with (
        mock.patch("taas.order.common_order.meeting_place", lambda purpose: together),
        mock.patch("taas.order.common_order._shared_before", iter([0, 0])),
    ):
        for rank in range(2):
            iterables.be_rank(rank, 2)
            loops.append(iter(register(DataLoader(Slow(4 * BATCHES), 4, num_workers=2), shared=True)))
        for batches in itertools.zip_longest(*loops):
            yield from batches


KINDS = [
    by_hash,
    by_random_numbers,
    by_worker_init_fn,
    by_variables,
    by_group,
    with_persistent_workers,
    resumed,
    shared,
]


def looped(kind, run, deaths):
    """What the loop saw, and how many workers died.

    One in four batches, and none before a batch has come since: three deaths over one task would end the loop.
    """
    seed()
    seen, killed, chosen, came = [], 0, random.Random(5), 0
    with mock.patch.dict(os.environ):
        for number, batch in enumerate(kind()):
            seen.append(looks_of(batch))
            if killed < deaths and number % 4 == 1:
                wait_until(lambda: run.client.statistics().batches > came)
                came = run.client.statistics().batches
                index = chosen.randrange(len(run.workers))
                run.workers[index].send_signal(chosen.choice((signal.SIGKILL, signal.SIGTERM)))
                run.workers[index].wait()
                run.replace(index)
                killed += 1
    return seen, killed


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_doubled_or_reordered(kind, data_workers):
    undisturbed, _ = looped(kind, data_workers(1, buffer_bytes=BUFFER_BYTES), 0)
    run = data_workers(3, buffer_bytes=BUFFER_BYTES)
    seen, killed = looped(kind, run, DEATHS)
    assert len(undisturbed) >= BATCHES - 2 and killed == DEATHS
    assert seen == undisturbed
