"""Samplers that do more than draw, or fail: they are drawn when the plain loader draws them."""

import itertools
import random
import sys

import pytest
import taas
import torch
import torch.distributed as dist
from conftest import as_with_one, equal, loop, seed, states
from own_datasets import Numbers, generator, numbers
from taas.order.draws import drawn_freely
from taas.order.index_batches import IndexBatches
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler

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


class Restless(Own):
    """What it does besides is seen by the dataset, the loader, other ranks, and another iterator."""

    def __iter__(self):
        for index in range(40):
            self.dataset.order.append(index)
            self.loader.drawn = index
            dist.all_reduce(torch.ones(1))
            yield next(_counter) % 100


class Raises(Own):
    def __iter__(self):
        yield from range(20)
        raise KeyError("no more")


class GoesOn:
    """Batches, by an iterator that goes on behind its error or its end: no generator can."""

    def __init__(self, error):
        self.error = error

    def __iter__(self):
        return self.Batches(self.error)

    class Batches:
        def __init__(self, error):
            self.error, self.count = error, 0

        def __iter__(self):
            return self

        def __next__(self):
            self.count += 1
            if self.count in (5, 6):
                raise self.error
            if self.count > 12:
                raise StopIteration
            return [self.count + int(torch.randint(3, ()))]


def watched(kind, workers, register):
    global _counter
    _counter = itertools.count()
    seed()
    dataset = Numbers()
    dataset.order = []
    loader = DataLoader(dataset, 4, sampler=kind(dataset), num_workers=workers)
    loader.sampler.loader = loader
    seen = []
    taas.register(loader) if register else as_with_one(loader)
    for _ in range(2):
        try:
            for batch in loader:
                seen.append((batch, list(dataset.order), getattr(loader, "drawn", 0), states()))
        except KeyError as error:
            seen.append(str(error))
    if register:
        taas.unregister(loader)
    return seen


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Own, Restless, Raises])
def test_a_sampler_does_what_it_does_when_it_would(kind, workers, data_workers, monkeypatch):
    data_workers(2)
    reduced = []
    monkeypatch.setattr(dist, "all_reduce", reduced.append)
    registered, count = watched(kind, workers, True), len(reduced)
    assert equal(registered, watched(kind, workers, False)) and len(reduced) == 2 * count


@pytest.mark.parametrize("error", [StopIteration(), KeyError("just now")])
def test_a_sampler_that_goes_on_is_asked_as_often_as_by_torch(error, data_workers):
    data_workers(2)

    def watched(register):
        seed()
        loader = DataLoader(numbers, batch_sampler=GoesOn(error), num_workers=2)
        batches, seen = iter(taas.register(loader) if register else loader), []
        for _ in range(16):
            try:
                seen.append((next(batches), states()))
            except (StopIteration, KeyError) as raised:
                seen.append((type(raised), states()))
        return seen

    assert equal(watched(True), watched(False))


@pytest.mark.parametrize(
    "sampler, free",
    [
        (SequentialSampler(range(22)), sys.maxsize),
        (RandomSampler(range(22)), sys.maxsize),
        (RandomSampler(range(22), generator=generator()), 22),
        (RandomSampler(range(22), replacement=True, generator=generator()), 0),
        (BatchSampler(RandomSampler(range(22), generator=generator()), 4, False), 5),
        (IndexBatches(BatchSampler(RandomSampler(range(22), generator=generator()), 4, False), 0, 2, False), 1),
        (SubsetRandomSampler([1, 2], generator=generator()), sys.maxsize),
        (BatchSampler(Own(numbers), 4, False), 0),
    ],
)
def test_how_many_batches_are_drawn_freely(sampler, free):
    assert drawn_freely(sampler) == free


@pytest.mark.parametrize("size", [20, 22])
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_given_generator_is_drawn_from_when_torch_draws_from_it(size, drop_last, data_workers):
    data_workers(4)

    def watched(register):
        own = generator()
        loader = DataLoader(Numbers(size), 4, shuffle=True, drop_last=drop_last, generator=own, num_workers=1)
        loader = taas.register(loader) if register else loader
        return [(batch, own.get_state()) for _ in range(2) for batch in loader] + [own.get_state()]

    assert equal(watched(True), watched(False))


def test_a_window_that_is_too_small_for_the_workers_is_said(data_workers):
    run = data_workers(2)
    for sampler, workers in [(Own(numbers), 0), (Own(numbers), 2), (None, 1)]:
        with taas.register(DataLoader(numbers, 4, sampler=sampler, num_workers=workers)) as loader:
            loop(loader), loop(loader)
    (said,) = run.remarks()
    assert "drawn as torch draws it, 2 batches ahead (prefetch_factor=2 x num_workers=1): larger numbers keep 2" in said
