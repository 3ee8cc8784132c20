"""Samplers and batch samplers in the styles of the libraries that bring their own."""

import itertools
import random

import numpy
import torch
from differential.pipeline import pipeline
from own_datasets import Numbers
from pipelines.everyday import Made
from torch.utils.data import DataLoader, Sampler, WeightedRandomSampler

SIZES = [int(size) for size in numpy.random.default_rng(3).integers(1, 100, 47)]


@pipeline()
def weighted(workers):
    sampler = WeightedRandomSampler([1.0 + index % 3 for index in range(47)], 30)
    return DataLoader(Numbers(47), 4, sampler=sampler, num_workers=workers)


class Buckets(Sampler):
    """fairseq, lhotse: samples of similar sizes, as many as a limit of size allows, the batches shuffled."""

    def __init__(self, sizes, limit):
        self.sizes, self.limit, self.epoch = sizes, limit, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order, batches, batch = sorted(range(len(self.sizes)), key=lambda index: (self.sizes[index], index)), [], []
        for index in order:
            if batch and (len(batch) + 1) * self.sizes[index] > self.limit:
                batches.append(batch)
                batch = []
            batch.append(index)
        batches.append(batch)
        random.Random(self.epoch).shuffle(batches)
        return iter(batches)


@pipeline(before_epoch=lambda loader, epoch: loader.batch_sampler.set_epoch(epoch))
def buckets_by_size(workers):
    return DataLoader(Numbers(47), batch_sampler=Buckets(SIZES, 300), num_workers=workers)


class PerClass(Sampler):
    """Metric learning: m classes, k samples of each, drawn by numpy's and Python's generators."""

    def __len__(self):
        return 8

    def __iter__(self):
        for _ in range(8):
            classes = numpy.random.choice(5, 3, replace=False)
            yield [int(number) * 9 + random.randrange(9) for number in classes for _ in range(2)]


@pipeline(resumes=False)
def some_of_each_class(workers):
    return DataLoader(Numbers(47), batch_sampler=PerClass(), num_workers=workers)


class KeepsItsPlace(Sampler):
    """An iterator of the sampler's own goes on from epoch to epoch."""

    def __init__(self):
        self.stream = itertools.cycle(range(47))

    def __iter__(self):
        return itertools.islice(self.stream, 20)


@pipeline(resumes=False)
def goes_on_from_epoch_to_epoch(workers):
    return DataLoader(Numbers(47), 4, sampler=KeepsItsPlace(), num_workers=workers)


class Pairs(Sampler):
    """Indices that are tuples: (sample, crop), as multi-scale training has them."""

    def __iter__(self):
        return iter([(index, index % 3) for index in torch.randperm(20).tolist()])


@pipeline()
def indices_that_are_pairs(workers):
    return DataLoader(Made(lambda index: (index[0] * 2, index[1])), 4, sampler=Pairs(), num_workers=workers)


@pipeline()
def indices_of_numpy(workers):
    return DataLoader(Numbers(47), 4, sampler=numpy.arange(20)[::-1], num_workers=workers)


losses = torch.zeros(47)


class Hard(Sampler):
    """Hard-example mining: the next batch is what training did worst on."""

    def __iter__(self):
        for _ in range(10):
            yield torch.topk(losses, 4).indices.tolist()


def train(loader, number):
    losses[torch.arange(number, 47, 5)] += float(torch.rand(()))


@pipeline(each_step=train, resumes=False)
def follows_the_losses(workers):
    return DataLoader(Numbers(47), batch_sampler=Hard(), num_workers=workers)


shared_stream = itertools.count()


class FromAModule(Sampler):
    """An iterator of the module, which the program reads from as well."""

    def __iter__(self):
        for _ in range(20):
            yield next(shared_stream) % 47


@pipeline(each_step=lambda loader, number: next(shared_stream), resumes=False)
def shares_an_iterator_with_the_program(workers):
    return DataLoader(Numbers(47), 4, sampler=FromAModule(), num_workers=workers)
