"""A loop sees the dataset, and the program, as they were at its iter().

So it is with the plain loader's num_workers=1; here with num_workers=0 as well.
"""

import multiprocessing

import pytest
import taas
import torch
from conftest import equal, loop
from taas.runtime import events
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, get_worker_info

WAYS = ["0", "1", "2"]
SEES_LATER = "has been changed since the last loop over it began: that loop has not seen it, and the next one does"


class Noise:
    def __init__(self):
        self.p = 0.0

    def __call__(self, sample):
        return sample + self.p


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, sample):
        for step in self.steps:
            sample = step(sample)
        return sample


class Images(Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return self.transform(torch.full((2,), float(index)))


def deep(noise):
    """The noise is more than a few attributes away from the loader."""
    return Subset(Subset(Images(Compose([Compose([noise])])), range(40)), range(40))


class Warming(IterableDataset):
    def __init__(self, noise):
        self.noise = noise

    def __iter__(self):
        yield from (number + self.noise.p for number in range(40))


def changed_in_its_loop(make, noise, number):
    """What three loops give: noise is set in the middle of the first."""
    noise.p = 0.0
    seen = []
    for _ in range(3):
        for place, batch in enumerate(make):
            seen.append(batch)
            if place == number:
                noise.p += 100.0
    return seen


@pytest.mark.parametrize("processes", WAYS)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("dataset", [deep, Warming])
def test_a_change_during_a_loop_is_seen_by_the_next(dataset, workers, processes, monkeypatch, capfd):
    monkeypatch.setenv("TAAS_DATA_WORKERS", processes)
    monkeypatch.setattr(events, "_said", set())
    noise = Noise()
    plain = changed_in_its_loop(DataLoader(dataset(noise), 4, num_workers=1), noise, 3)
    with taas.register(DataLoader(dataset(noise), 4, num_workers=workers)) as loader:
        assert equal(changed_in_its_loop(loader, noise, 3), plain)
    said = capfd.readouterr().err
    assert said.count("num_workers=0 is as num_workers=1") == (workers == 0)
    assert said.count(SEES_LATER) == (workers == 0 and processes != "0")


def test_what_is_set_between_loops_needs_no_line(monkeypatch, capfd):
    monkeypatch.setattr(events, "_said", set())
    noise = Noise()
    with taas.register(DataLoader(deep(noise), 4)) as loader:
        for noise.p in (1.0, 2.0, 3.0):
            assert next(iter(loop(loader)))[0, 0] == noise.p
    assert SEES_LATER not in capfd.readouterr().err


class Counts(Dataset):
    """Keeps what it was asked for."""

    def __init__(self):
        self.asked = []

    def __len__(self):
        return 4

    def __getitem__(self, index):
        self.asked.append(index)
        return len(self.asked), get_worker_info() is None


@pytest.mark.parametrize("processes", ["0", "1"])
def test_what_the_dataset_keeps_stays_in_the_process_of_its_batches(processes, monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", processes)

    def fails(_):
        raise AssertionError("with num_workers=0 there is no worker that begins")

    with taas.register(DataLoader(Counts(), 1, collate_fn=lambda rows: rows[0], worker_init_fn=fails)) as loader:
        assert loop(loader) == [(number, True) for number in range(1, 5)]
        assert loader.dataset.asked == []


class Consumes(IterableDataset):
    """A source that gives each sample once."""

    def __init__(self, queue):
        self.queue = queue

    def __iter__(self):
        for _ in range(4):
            yield self.queue.get(timeout=60)


@pytest.mark.parametrize("workers", [0, 2])
def test_each_sample_of_a_source_is_in_one_loop(workers, monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "0")
    queue, count = multiprocessing.Queue(), 4 * max(1, workers)
    for sample in range(3 * count):
        queue.put(sample)
    with taas.register(DataLoader(Consumes(queue), 1, num_workers=workers)) as loader:
        for epoch in range(3):
            assert sorted(int(batch) for batch in loader) == list(range(epoch * count, (epoch + 1) * count))
    assert queue.empty()


@pytest.mark.parametrize("dataset, is_begun", [(Warming(Noise()), False), (deep(Noise()), True)])
def test_no_stream_is_begun_ahead_of_its_loop(dataset, is_begun):
    with taas.register(DataLoader(dataset, 4, num_workers=1)) as loader:
        loop(loader)
        assert (loader.__dict__["_taas"]._prefetched._waiting is not None) == is_begun
