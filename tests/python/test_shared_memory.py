"""Memory that processes share on purpose: seen by data workers as by torch's own, or refused with the name of what holds it."""

import multiprocessing
import os

import numpy
import pytest
import taas
import torch
from conftest import equal, loop
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
    """As Hugging Face's datasets: the epoch is in memory that processes share, which the program sets between its loops."""

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
@pytest.mark.parametrize("way", ["forks", "started", "machines"])
def test_what_the_program_sets_between_loops_is_seen(way, make, persistent, monkeypatch, request):
    if way != "forks" and make is not tensor and not persistent and not FULL:
        pytest.skip("only in the full run (TAAS_FULL=1): workers that import torch first take seconds")
    memory = make(1)
    start = {"multiprocessing_context": "spawn"} if way == "started" else {}

    def loader(**other):
        return DataLoader(Told(memory), 4, num_workers=2, persistent_workers=persistent, **other)

    plain = epochs(loader(), memory)
    if way == "machines":
        request.getfixturevalue("run").start(2)
    else:
        monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    with taas.register(loader(**start)) as registered:
        assert equal(epochs(registered, memory), plain)


@pytest.mark.parametrize("make", [tensor, array])
def test_what_workers_write_is_refused_where_the_program_would_not_see_it(make, run):
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


@pytest.mark.parametrize("make", [lambda: tensor(1 << 16), lambda: array(1 << 16), lambda: multiprocessing.Manager().dict()],
                         ids=["tensor", "array", "manager"])
def test_caches_and_managers_are_refused_by_name(make, run):
    run.start(1)
    with taas.register(DataLoader(Holds(make()), 4, num_workers=1)) as loader:
        with pytest.raises(TypeError, match=r"dataset\.inner\.inner\[0\]\['epoch'\] .* cannot be pickled.* for forks of the program alone: run with --cpus 0") as refusal:
            loop(loader)
    assert len(str(refusal.value).splitlines()) == 1


def test_a_cache_that_forks_fill_is_filled(monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    memory = tensor(1 << 16)
    with taas.register(DataLoader(Fills(memory), 4, num_workers=2)) as loader:
        loop(loader)
    assert memory[0] > 0
