"""Small batches, asked for many at a time: the same batches, one by one to the program and to whoever is to blame."""

import os

import pytest
import taas
import torch
from conftest import equal, loop
from own_datasets import Numbers
from taas.order.bundle import payload_of, tasks_in
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

SIZE = 3000


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        return (torch.tensor(number) for number in range(first, SIZE - 7, step))


class Raises(Numbers):
    """Now and then."""

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        if index % 500 == 499:
            raise ValueError(f"index {index}")
        return torch.tensor(index)


class Deadly(Raises):
    """One index ends whoever asks for it."""

    def __getitem__(self, index):
        if index == 1234:
            os._exit(3)
        return torch.tensor(index)


class Slow(Dataset):
    """Takes longer than bundles wait."""

    def __len__(self):
        return 60

    def __getitem__(self, index):
        torch.linalg.svdvals(torch.rand(300, 300))
        return index


def of_tensors(workers):
    return DataLoader(TensorDataset(torch.arange(SIZE)), 1, shuffle=True, num_workers=workers)


def of_a_stream(workers):
    return DataLoader(Stream(), 2, num_workers=workers)


def at_once(batches):
    return batches._feed.stream._at_once


def seen_in(loader):
    """The batches, and how many were asked for at once at most."""
    batches, seen, most = iter(loader), [], 0
    for batch in batches:
        seen.append(batch)
        most = max(most, at_once(batches))
    return seen, most


@pytest.mark.parametrize("make, workers", [(of_tensors, 1), (of_tensors, 3), (of_a_stream, 2)])
def test_small_batches_come_many_at_a_time_and_are_the_same(make, workers, data_workers):
    data_workers(1)
    torch.manual_seed(1)
    plain = loop(make(workers))
    torch.manual_seed(1)
    with taas.register(make(workers)) as loader:
        seen, most = seen_in(loader)
    assert equal(seen, plain)
    assert most > 1


def test_slow_batches_come_one_by_one(data_workers):
    data_workers(1)
    with taas.register(DataLoader(Slow(), 1, num_workers=1)) as loader:
        seen, most = seen_in(loader)
    assert torch.cat(seen).tolist() == list(range(60)) and most <= 2


def test_exceptions_are_raised_where_they_belong(data_workers):
    data_workers(1)
    with taas.register(DataLoader(Raises(), 1, num_workers=2)) as loader:
        batches = iter(loader)
        for number in range(SIZE):
            if number % 500 == 499:
                with pytest.raises(ValueError, match=f"index {number}"):
                    next(batches)
            else:
                assert int(next(batches)) == number


@pytest.mark.parametrize("make, workers", [(of_tensors, 1), (of_a_stream, 2)])
def test_a_worker_that_dies_with_many_changes_nothing(make, workers, data_workers):
    run = data_workers(2)
    torch.manual_seed(1)
    with taas.register(make(workers)) as loader:
        undisturbed = loop(loader)
    torch.manual_seed(1)
    with taas.register(make(workers)) as loader:
        seen = []
        for number, batch in enumerate(loader):
            seen.append(batch)
            if number in (200, 900):
                run.replace(number // 200 % 2)
    assert equal(seen, undisturbed)


@pytest.mark.parametrize("worker_init_fn", [None, lambda worker: None])
def test_one_batch_is_to_blame_for_the_end_of_workers(worker_init_fn, data_workers):
    data_workers(2).keep()
    with taas.register(DataLoader(Deadly(), 1, num_workers=2, worker_init_fn=worker_init_fn)) as loader:
        batches = iter(loader)
        assert [int(next(batches)) for _ in range(1234)] == list(range(1234))
        with pytest.raises(RuntimeError, match="1234"):
            next(batches)
        assert [int(batch) for batch in batches] == list(range(1235, SIZE))


def test_a_loop_is_resumed_in_the_middle_of_a_bundle(data_workers):
    data_workers(1)
    torch.manual_seed(1)
    with taas.register(of_tensors(2)) as loader:
        batches = iter(loader)
        for _ in range(1001):
            next(batches)
        state, states = loader.state_dict(), torch.get_rng_state()
        rest = list(batches)
    with taas.register(of_tensors(2)) as loader:
        loader.load_state_dict(state)
        torch.set_rng_state(states)
        assert equal(loop(loader), rest)


@pytest.mark.parametrize("tasks", [[b"a"], [b"one", b"", b"three" * 1000]])
def test_tasks_are_found_again(tasks):
    task = [b"\x01" + each for each in tasks]
    assert tasks_in(payload_of(task)) == task
