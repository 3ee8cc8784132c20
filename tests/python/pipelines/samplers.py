"""Samplers and batch samplers in the styles of the libraries that bring their own."""

import itertools
import math
import random

import numpy
import torch
from differential.pipeline import pipeline
from pipelines.everyday import Numbers, generator
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

SIZES = [int(size) for size in numpy.random.default_rng(3).integers(1, 100, 47)]


def set_epoch(loader, epoch):
    loader.sampler.set_epoch(epoch)


@pipeline(before_epoch=set_epoch)
def distributed(workers):
    return DataLoader(Numbers(), 4, sampler=DistributedSampler(Numbers(), 3, 1), num_workers=workers)


@pipeline(before_epoch=set_epoch)
def distributed_without_the_rest(workers):
    return DataLoader(
        Numbers(), 4, sampler=DistributedSampler(Numbers(), 4, 3, drop_last=True, seed=3), num_workers=workers
    )


@pipeline()
def distributed_whose_epoch_is_forgotten(workers):
    return DataLoader(Numbers(), 4, sampler=DistributedSampler(Numbers(), 3, 2), num_workers=workers)


@pipeline()
def weighted(workers):
    return DataLoader(
        Numbers(), 4, sampler=WeightedRandomSampler([1.0 + index % 3 for index in range(47)], 30), num_workers=workers
    )


@pipeline()
def with_replacement(workers):
    return DataLoader(Numbers(), 4, sampler=RandomSampler(Numbers(), True, 60), num_workers=workers)


@pipeline()
def more_than_there_are(workers):
    return DataLoader(Numbers(), 8, sampler=RandomSampler(Numbers(), False, 100, generator()), num_workers=workers)


@pipeline()
def random_subset(workers):
    return DataLoader(Numbers(), 4, sampler=SubsetRandomSampler(range(5, 25)), num_workers=workers)


@pipeline()
def batches_of_a_sampler(workers):
    return DataLoader(Numbers(), batch_sampler=BatchSampler(SequentialSampler(Numbers()), 5, True), num_workers=workers)


@pipeline(epochs=1)
def a_generator_of_batches(workers):
    return DataLoader(Numbers(), batch_sampler=(batch for batch in ([1, 2], [3], [4, 5, 6], [7])), num_workers=workers)


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
    return DataLoader(Numbers(), batch_sampler=Buckets(SIZES, 300), num_workers=workers)


class RepeatedAugmentation(Sampler):
    """timm, DeiT: each sample three times, over all ranks."""

    def __init__(self, dataset, ranks, rank):
        self.dataset, self.ranks, self.rank, self.epoch = dataset, ranks, rank, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = torch.randperm(len(self.dataset), generator=torch.Generator().manual_seed(self.epoch))
        repeated = torch.repeat_interleave(order, 3).tolist()
        repeated += repeated[: -len(repeated) % self.ranks]
        return iter(repeated[self.rank :: self.ranks][: math.ceil(len(self.dataset) / self.ranks)])


@pipeline(before_epoch=set_epoch)
def repeated_augmentation(workers):
    return DataLoader(Numbers(), 4, sampler=RepeatedAugmentation(Numbers(), 2, 1), num_workers=workers)


class Endless(Sampler):
    """detectron2's TrainingSampler."""

    def __iter__(self):
        drawn = torch.Generator().manual_seed(7)
        while True:
            yield from torch.randperm(47, generator=drawn).tolist()


@pipeline(epochs=1, resumes=False)
def endless(workers):
    return DataLoader(Numbers(), 4, sampler=Endless(), num_workers=workers)


class EachFromTheProcess(Sampler):
    def __iter__(self):
        for _ in range(30):
            yield int(torch.randint(40, ()).item())


@pipeline(resumes=False)
def draws_each_index_from_torch(workers):
    return DataLoader(Numbers(), 4, sampler=EachFromTheProcess(), num_workers=workers)


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
    return DataLoader(Numbers(), batch_sampler=PerClass(), num_workers=workers)


class KeepsItsPlace(Sampler):
    """An iterator of the sampler's own goes on from epoch to epoch."""

    def __init__(self):
        self.stream = itertools.cycle(range(47))

    def __iter__(self):
        return itertools.islice(self.stream, 20)


@pipeline(resumes=False)
def goes_on_from_epoch_to_epoch(workers):
    return DataLoader(Numbers(), 4, sampler=KeepsItsPlace(), num_workers=workers)


class Pairs(Sampler):
    """Indices that are tuples: (sample, crop), as multi-scale training has them."""

    def __iter__(self):
        return iter([(index, index % 3) for index in torch.randperm(20).tolist()])


class Crops(Numbers):
    def __getitem__(self, index):
        sample, scale = index
        return torch.full((2,), float(sample)), scale


@pipeline()
def indices_that_are_pairs(workers):
    return DataLoader(Crops(), 4, sampler=Pairs(), num_workers=workers)


@pipeline()
def indices_of_numpy(workers):
    return DataLoader(Numbers(), 4, sampler=numpy.arange(20)[::-1], num_workers=workers)
