"""Loops that end early, several at once, memory, and the program's end: nothing leaks and nothing hangs."""

import gc
import os
import sys

import pytest
import taas
import torch
from conftest import equal, loop, printed, wait_until
from own_datasets import Big, Numbers, Slow, numbers
from torch.utils.data import DataLoader, IterableDataset


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(1 << 12)


def living(pids):
    """One that has ended, and that nobody has waited for, has no files."""
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}/fd/0")]


def children(pids):
    return living(child for pid in pids for child in open(f"/proc/{pid}/task/{pid}/children").read().split())


@pytest.mark.gate
@pytest.mark.parametrize("dataset", [Slow(), Endless()])
def test_loops_left_early_are_closed(dataset, data_workers, capfd):
    run = data_workers(2)
    with taas.register(DataLoader(dataset, 8, num_workers=2)) as loader:
        for _ in range(20):
            for _ in loader:
                break
        iterators = [iter(loader) for _ in range(5)]
        for iterator in iterators:
            next(iterator)
        del iterators, iterator
        gc.collect()
        assert isinstance(dataset, Endless) or len(loop(loader)) == 13
        next(iter(loader))
        assert not children(run.pids())
    assert capfd.readouterr() == ("", "")


@pytest.mark.gate
def test_several_loops_at_once(data_workers):
    data_workers(2)
    plain = loop(DataLoader(numbers, 8))
    with (
        taas.register(DataLoader(numbers, 8)) as train,
        taas.register(DataLoader(Numbers(16), 4, num_workers=2)) as validation,
    ):
        for number, batch in enumerate(train):
            assert equal(batch, plain[number])
            if number % 4 == 0:
                assert equal(loop(validation), loop(DataLoader(Numbers(16), 4, num_workers=2)))
        assert all(equal(one, other) for one, other in zip(train, train))


def test_all_batches_may_be_kept(data_workers):
    data_workers(1, buffer_bytes=32 << 20)
    with taas.register(DataLoader(Big(64), 8)) as loader:  # 8 MiB each
        assert equal(list(loader), list(DataLoader(Big(64), 8)))


@pytest.mark.gate
def test_memory_stays_in_the_budget_for_a_slow_consumer(data_workers):
    run = data_workers(1, buffer_bytes=32 << 20)
    with taas.register(DataLoader(Big(200), 4)) as loader:  # 50 batches of 4 MiB
        most = 0
        for number, _ in enumerate(loader):
            if number == 1:
                wait_until(lambda: run.client.statistics().waiting >= 3)
            most = max(most, run.client.statistics().buffered_bytes)
    assert 4 << 20 <= most <= 32 << 20


PROGRAM = """
import taas, threading, torch
from torch.utils.data import DataLoader, TensorDataset
loader = taas.register(DataLoader(TensorDataset(torch.rand(1000, 4)), 8, num_workers=2))
"""
ENDINGS = {
    "in the middle of a loop": "next(iter(loader))",
    "with an iterator and a batch": "iterator = iter(loader); batch = next(iterator)",
    "with an exception": "next(iter(loader)); raise SystemExit(0)",
    "behind a thread": "thread = threading.Thread(target=lambda: list(loader)); thread.start(); thread.join()",
}


@pytest.mark.parametrize(
    "ending", [pytest.param(name, marks=pytest.mark.gate) if "middle" in name else name for name in ENDINGS]
)
def test_programs_end(ending, data_workers):
    data_workers(1)
    assert not printed(sys.executable, "-c", PROGRAM + ENDINGS[ending])
