"""The kill test: workers die all the time, and nothing is lost, doubled or in another order. 50 for each dataset.

Among the datasets are those that depend on who makes a batch: on the order of a set of strings, on the rank's variables
and on its process group.
"""

import contextlib
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
from pipelines import collates, iterables, samples
from taas import register
from torch.utils.data import DataLoader

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
    return DataLoader(samples.Made(words, 4 * BATCHES), 4, shuffle=True, num_workers=3, collate_fn=list)


def by_variables():
    iterables.be_rank(2, 3)
    return DataLoader(SlowByVariables(12 * BATCHES), 4, num_workers=2)


def by_group():
    iterables.be_rank(1, 2)
    iterables.join_group(1, 2)
    return DataLoader(SlowByGroup(11 * BATCHES), 4, num_workers=2)


def mixed_up(rows):
    time.sleep(0.002)
    return collates.mixed_up(rows), [CARGO.clone() for _ in rows]


def by_random_numbers():
    return DataLoader(samples.Made(collates.text, 4 * BATCHES), 4, shuffle=True, num_workers=2, collate_fn=mixed_up)


DATASETS = [by_hash, by_variables, by_group, by_random_numbers]


@contextlib.contextmanager
def registered(make):
    """What `make` sets for the process is undone at the end."""
    with mock.patch.dict(os.environ), register(make()) as loader:
        yield loader
    if dist.is_initialized():
        dist.destroy_process_group()


def looped(make, run, deaths):
    """What the loop saw, and how many workers died.

    One in four batches, and none before a batch has come since: five deaths over one task would end the loop.
    """
    seed()
    seen, killed, chosen, came = [], 0, random.Random(5), 0
    with registered(make) as loader:
        for number, batch in enumerate(loader):
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


@pytest.mark.parametrize("make", DATASETS)
def test_nothing_is_lost_doubled_or_reordered(make, data_workers):
    undisturbed, _ = looped(make, data_workers(1, buffer_bytes=BUFFER_BYTES), 0)
    run = data_workers(3, buffer_bytes=BUFFER_BYTES)
    seen, killed = looped(make, run, DEATHS)
    assert len(undisturbed) >= BATCHES - 2 and killed == DEATHS and run.client.statistics().hedged > 0
    assert seen == undisturbed
