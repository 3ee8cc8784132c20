"""Memory shared on purpose: seen by data workers as by torch's own, or refused with the name of what holds it."""

import multiprocessing
import os

import numpy
import pytest
import taas
import torch
from conftest import equal, loop
from taas.dataset import file_memory
from taas.delivery.plan_delivery import FromRun
from torch.utils.data import DataLoader, Dataset

SIZE = 12
FULL = bool(os.environ.get("TAAS_FULL"))


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
@pytest.mark.parametrize("way", ["forks", "started", "machine", "machines"])
def test_what_the_program_sets_between_loops_is_seen(way, make, persistent, monkeypatch, request):
    if way != "forks" and make is not tensor and not persistent and not FULL:
        pytest.skip("only in the full run (TAAS_FULL=1): workers that import torch first take seconds")
    memory = make(1)
    start = {"multiprocessing_context": "spawn"} if way == "started" else {}

    def loader(**other):
        return DataLoader(Told(memory), 4, num_workers=2, persistent_workers=persistent, **other)

    plain = epochs(loader(), memory)
    if way == "machines":
        monkeypatch.setattr(file_memory, "_machine", lambda: "another one")
    if way.startswith("machine"):
        request.getfixturevalue("run").start(2)
    else:
        monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    with taas.register(loader(**start)) as registered:
        assert equal(epochs(registered, memory), plain)


@pytest.mark.parametrize("make", [tensor, array])
def test_what_workers_write_is_refused_where_the_program_would_not_see_it(make, run, monkeypatch):
    monkeypatch.setattr(file_memory, "_machine", lambda: "another one")
    run.start(1)
    with taas.register(DataLoader(Fills(make(1)), 4, num_workers=1)) as loader:
        with pytest.raises(RuntimeError, match="writes into memory that processes share .* run with --cpus 0"):
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
def test_caches_and_managers_are_refused_by_name(make, run, monkeypatch):
    monkeypatch.setattr(FromRun, "_are_here", lambda self: False)
    run.start(1)
    with taas.register(DataLoader(Holds(make()), 4, num_workers=1)) as loader:
        with pytest.raises(
            TypeError, match=r"dataset\.inner\.inner\[0\]\['epoch'\] .* cannot be pickled.* alone: run with --cpus 0"
        ) as refusal:
            loop(loader)
    assert len(str(refusal.value).splitlines()) == 1


def test_a_machine_that_comes_later_refuses_a_cache(run, monkeypatch):
    monkeypatch.setattr(file_memory, "_machine", lambda: "another one")
    run.start(1)
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
@pytest.mark.parametrize("way", ["forks", "started", "machine"])
@pytest.mark.parametrize("size", [SIZE, 1 << 16], ids=["small", "large"])
def test_a_cache_that_workers_fill_is_filled_once_for_each_loop(size, way, make, persistent, monkeypatch, request):
    if way != "forks" and (make is as_tensor or size == SIZE) and not FULL:
        pytest.skip("only in the full run (TAAS_FULL=1): workers that import torch first take seconds")
    start = {"multiprocessing_context": "spawn"} if way == "started" else {}
    ours, theirs = make(size), make(size)
    plain = loop(DataLoader(Caches(theirs), 4, num_workers=2, persistent_workers=persistent), 3)
    if way == "machine":
        request.getfixturevalue("run").start(2)
    else:
        monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    with taas.register(DataLoader(Caches(ours), 4, num_workers=2, persistent_workers=persistent, **start)) as loader:
        assert equal(loop(loader, 3), plain)
    assert equal(torch.as_tensor(ours), torch.as_tensor(theirs))


CACHE = torch.zeros(SIZE, dtype=torch.int64).share_memory_()


class CachesOfAModule(Caches):
    def __init__(self):
        pass

    cache = property(lambda self: CACHE)


def test_nothing_is_made_ahead_over_memory_of_a_module_that_processes_share(monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    plain = loop(DataLoader(CachesOfAModule(), 4, num_workers=2), 3)
    CACHE.zero_()
    with taas.register(DataLoader(CachesOfAModule(), 4, num_workers=2)) as loader:
        assert equal(loop(loader, 3), plain)
