"""Memory shared on purpose: seen by data workers as by torch's own, or refused with the name of what holds it."""

import multiprocessing

import numpy
import pytest
import taas
import torch
from conftest import equal, loop
from taas.dataset import file_memory
from taas.delivery.run_workers import RunWorkers
from torch.utils.data import DataLoader, Dataset

SIZE = 12


def tensor(count):
    return torch.zeros(count, dtype=torch.int64).share_memory_()


def array(count):
    return numpy.frombuffer(multiprocessing.Array("q", count).get_obj(), numpy.int64)


def as_tensor(count):
    return torch.from_numpy(array(count))


class Told(Dataset):
    """As Hugging Face's datasets: the epoch is in shared memory, which the program sets between its loops."""

    def __init__(self, memory):
        self.inner = [{"epoch": memory}]

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        return index, int(self.inner[0]["epoch"][0])


class Fills(Told):
    """Workers write into it."""

    def __getitem__(self, index):
        self.inner[0]["epoch"][0] += 1
        return index


def epochs(loader, memory):
    """Three, of which the program tells the workers."""
    seen = []
    for epoch in range(3):
        memory[0] = epoch
        seen += loop(loader)
    memory[0] = 0
    return seen


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("make", [tensor, array, as_tensor])
@pytest.mark.parametrize("are_elsewhere", [False, True])
def test_what_the_program_sets_between_loops_is_seen(are_elsewhere, make, persistent, data_workers, monkeypatch):
    memory = make(1)

    def loader():
        return DataLoader(Told(memory), 4, num_workers=2, persistent_workers=persistent)

    plain = epochs(loader(), memory)
    if are_elsewhere:
        monkeypatch.setattr(file_memory, "_machine", lambda: "another one")
    data_workers(2)
    with taas.register(loader()) as registered:
        assert equal(epochs(registered, memory), plain)


@pytest.mark.parametrize("make", [tensor, array])
def test_what_workers_write_is_refused_where_the_program_would_not_see_it(make, data_workers, monkeypatch):
    monkeypatch.setattr(file_memory, "_machine", lambda: "another one")
    data_workers(1)
    with taas.register(DataLoader(Fills(make(1)), 4, num_workers=1)) as loader:
        with pytest.raises(RuntimeError, match="writes into memory that processes share .* run without --cpus"):
            loop(loader)


class Holds(Dataset):
    def __init__(self, cache):
        self.inner = Told(cache)

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        return index


@pytest.mark.parametrize(
    "make",
    [lambda: tensor(1 << 16), lambda: array(1 << 16), lambda: multiprocessing.Manager().dict()],
    ids=["tensor", "array", "manager"],
)
def test_caches_and_managers_are_refused_by_name(make, data_workers, monkeypatch):
    monkeypatch.setattr(RunWorkers, "_are_here", lambda self: False)
    data_workers(1)
    with taas.register(DataLoader(Holds(make()), 4, num_workers=1)) as loader:
        with pytest.raises(
            TypeError, match=r"dataset\.inner\.inner\[0\]\['epoch'\] .* cannot be pickled.*: run without --cpus"
        ) as refusal:
            loop(loader)
    assert len(str(refusal.value).splitlines()) == 1


def test_a_machine_that_comes_later_refuses_a_cache(data_workers, monkeypatch):
    monkeypatch.setattr(file_memory, "_machine", lambda: "another one")
    data_workers(1)
    with taas.register(DataLoader(Holds(tensor(1 << 16)), 4, num_workers=1)) as loader:
        with pytest.raises(
            RuntimeError, match="the dataset has 0.5 MB of memory that processes share .* on the machine of the program"
        ):
            loop(loader)


class Caches(Dataset):
    """The first epoch fills it, and the others read it."""

    def __init__(self, cache):
        self.cache = cache

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        was = int(self.cache[index])
        self.cache[index] = was + index + 1
        return index, was


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("make", [tensor, array, as_tensor])
@pytest.mark.parametrize("size", [SIZE, 1 << 16], ids=["small", "large"])
def test_a_cache_that_workers_fill_is_filled_once_for_each_loop(size, make, persistent, data_workers):
    ours, theirs = make(size), make(size)
    plain = loop(DataLoader(Caches(theirs), 4, num_workers=2, persistent_workers=persistent), 3)
    data_workers(2)
    with taas.register(DataLoader(Caches(ours), 4, num_workers=2, persistent_workers=persistent)) as loader:
        assert equal(loop(loader, 3), plain)
    assert equal(torch.as_tensor(ours), torch.as_tensor(theirs))
