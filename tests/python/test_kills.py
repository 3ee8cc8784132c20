"""The kill test: workers die all the time, and nothing is lost, doubled or in another order. 50 for each kind of loop.

The samples depend on who makes them: on random numbers, the order of a set of strings, and the variables of the rank.
"""

import contextlib
import itertools
import os
import random
import signal
import time
from unittest import mock

import pytest
import torch
from conftest import seed, wait_until
from differential.looks import looks_of
from own_datasets import Numbers, Sharded
from taas import register
from test_shared_streams import Together
from torch.utils.data import DataLoader, get_worker_info

DEATHS = 50
BATCHES = 4 * DEATHS + 20  # not all are under way when the last worker dies
BUFFER_BYTES = 128 << 10
CARGO = torch.zeros(1 << 10)
"""Of each sample: no batch is a small one then, and no more than 12 are under way for three workers."""


def sample(index):
    """Slowly: the workers are behind the loop, so that a death takes a batch with it."""
    time.sleep(0.0005)
    words = {f"word {number} of {index}" for number in range(40)}
    return index, list(words)[:3], random.random(), os.environ["LOCAL_RANK"], CARGO.clone()


class Rows(Numbers):
    offset = None

    def __getitem__(self, index):
        return self.offset, sample(index)


class Stream(Sharded):
    def __iter__(self):
        return map(sample, super().__iter__())


def noisy(samples):
    return samples, random.random(), torch.rand(3)


def draw_offset(worker):
    get_worker_info().dataset.offset = worker, random.random()


def of_indices():
    with register(DataLoader(Rows(4 * BATCHES), 4, shuffle=True, num_workers=3, collate_fn=noisy)) as loader:
        yield from loader


def of_copies():
    options = {"num_workers": 3, "collate_fn": list, "worker_init_fn": draw_offset}
    with register(DataLoader(Rows(4 * BATCHES), 4, **options)) as loader:
        yield from loader


def of_persistent_workers():
    options = {"num_workers": 2, "collate_fn": list, "persistent_workers": True}
    with register(DataLoader(Stream(BATCHES * 4 // 3 + 10), 4, **options)) as loader:
        for _ in range(3):
            yield from loader


def resumed():
    """Every 20 batches by another loop, over a stream and over indices in turn."""
    for dataset, options in ((Stream(2 * BATCHES), {}), (Rows(2 * BATCHES), {"shuffle": True})):
        with register(DataLoader(dataset, 4, num_workers=2, collate_fn=noisy, **options)) as loader:
            count = 20
            while count == 20:
                count = 0
                for count, batch in enumerate(itertools.islice(loader, 20), 1):
                    yield batch
                loader.load_state_dict(loader.state_dict())


def shared():
    """A stream by two ranks, in one process."""
    together, loops = Together(), []
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch("taas.order.common_order.meeting_place", lambda purpose: together))
        stack.enter_context(mock.patch("taas.order.common_order._shared_before", iter([0, 0])))
        for rank in range(2):
            os.environ.update(RANK=str(rank), WORLD_SIZE="2")
            loader = DataLoader(Stream(4 * BATCHES), 4, num_workers=2, collate_fn=noisy)
            loops.append(iter(stack.enter_context(register(loader, shared=True))))
        for batches in itertools.zip_longest(*loops):
            yield from batches


def looped(kind, run, deaths):
    """What the loop saw, and how many workers died.

    One in four batches, and none before a batch has come since: three deaths over one task would end the loop.
    """
    seed()
    seen, killed, chosen, came = [], 0, random.Random(5), 0
    with mock.patch.dict(os.environ, LOCAL_RANK="1"):
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


@pytest.mark.parametrize(
    "kind", [pytest.param(of_indices, marks=pytest.mark.gate), of_copies, of_persistent_workers, resumed, shared]
)
def test_nothing_is_lost_doubled_or_reordered(kind, data_workers):
    undisturbed, _ = looped(kind, data_workers(1, buffer_bytes=BUFFER_BYTES), 0)
    run = data_workers(3, buffer_bytes=BUFFER_BYTES)
    seen, killed = looped(kind, run, DEATHS)
    assert len(undisturbed) >= BATCHES - 2 and killed == DEATHS
    assert seen == undisturbed
