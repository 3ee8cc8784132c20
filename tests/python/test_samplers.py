"""Samplers that do more than draw, or fail: they are drawn when the plain loader draws them."""

import itertools
import random

import pytest
import taas
import torch
import torch.distributed as dist
from conftest import as_with_one, equal, seed, states
from own_datasets import Numbers, numbers
from taas.program import random_states
from taas.order.draws import Unknown
from taas.order.sampler_prediction import Rehearsal
from torch.utils.data import DataLoader, Sampler

_counter = itertools.count()


class Own(Sampler):
    """A sampler of ordinary shape: holds lengths, an epoch and a generator."""

    def __init__(self, dataset):
        self.dataset, self.epoch, self.generator = dataset, 0, torch.Generator()
        self.lengths = [index % 7 for index in range(40)]

    def __iter__(self):
        shuffled = torch.randperm(40, generator=self.generator).tolist()
        random.Random(self.epoch).shuffle(shuffled)
        self.epoch += 1
        yield from sorted(shuffled, key=lambda index: self.lengths[index])

    def __len__(self):
        return 40


class Communicates(Own):
    def __iter__(self):
        for index in range(40):
            self.dataset.order.append(index)
            dist.all_reduce(torch.ones(1))
            yield index


class ChangesDataset(Own):
    def __iter__(self):
        for index in range(40):
            self.dataset.drawn += 1
            yield index


class UsesAnIterator(Own):
    def __iter__(self):
        for _ in range(40):
            yield next(_counter) % 100


class ChangesLoader(Own):
    def __iter__(self):
        for index in range(40):
            self.loader.drawn = index
            yield index


class Raises(Own):
    def __iter__(self):
        yield from range(20)
        raise KeyError("no more")


class Changing(Numbers):
    def __init__(self):
        super().__init__()
        self.drawn, self.order = 0, []


def watched(kind, workers, register):
    global _counter
    _counter = itertools.count()
    seed()
    dataset = Changing()
    sampler = kind(dataset)
    loader = DataLoader(dataset, 4, sampler=sampler, num_workers=workers)
    sampler.loader = loader if kind is ChangesLoader else None
    seen = []
    taas.register(loader) if register else as_with_one(loader)
    for _ in range(2):
        try:
            for batch in loader:
                seen.append((batch, dataset.drawn, list(dataset.order), getattr(loader, "drawn", 0), states()))
        except KeyError as error:
            seen.append(str(error))
    if register:
        taas.unregister(loader)
    return seen


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Own, Communicates, ChangesDataset, UsesAnIterator, ChangesLoader, Raises])
def test_a_sampler_does_what_it_does_when_it_would(kind, workers, data_workers, monkeypatch):
    data_workers(2)
    monkeypatch.setattr(dist, "all_reduce", lambda tensor: numbers_reduced.append(int(tensor)))
    numbers_reduced = []
    registered, reduced = watched(kind, workers, True), len(numbers_reduced)
    assert equal(registered, watched(kind, workers, False)) and len(numbers_reduced) == 2 * reduced


def test_a_sampler_of_ordinary_shape_is_drawn_ahead():
    loader = DataLoader(numbers, 4, sampler=Own(numbers))
    rehearsal = Rehearsal(loader, random_states.capture())
    assert rehearsal.ahead(5) == list(loader.batch_sampler)[5]


@pytest.mark.parametrize("kind", [Communicates, UsesAnIterator])
def test_a_sampler_that_does_more_is_not_drawn_ahead(kind):
    with pytest.raises(Unknown):
        Rehearsal(DataLoader(numbers, 4, sampler=kind(numbers)), random_states.capture())
