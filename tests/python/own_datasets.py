"""Datasets and samplers of the tests, importable by data workers."""

import collections
import os
import random
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info

Pair = collections.namedtuple("Pair", "image label")


class Numbers(Dataset):
    """103 samples without randomness."""

    def __init__(self, size=103):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return torch.full((3, 2), float(index)), index


class Augmented(Numbers):
    """Draws from all three generators."""

    def __getitem__(self, index):
        return torch.randn(4) + index, numpy.random.rand(3), random.random()


class Noted(Numbers):
    """Says in the file $NOTED what was made."""

    def __getitem__(self, index):
        with open(os.environ["NOTED"], "a") as file:
            file.write(f"{index} ")
        return index


class Slow(Augmented):
    def __getitem__(self, index):
        time.sleep(0.001)
        return super().__getitem__(index)


class Fails(Numbers):
    def __getitem__(self, index):
        if index == 37:
            raise KeyError("sample 37 is broken")
        return super().__getitem__(index)


class Carries(Numbers):
    """Has much with it that is sent to the workers."""

    def __init__(self, number, size):
        super().__init__()
        self.cargo = torch.full((size,), number, dtype=torch.uint8)


class Big(Numbers):
    def __getitem__(self, index):
        return torch.full((1 << 18,), float(index))


class Sharded(IterableDataset):
    """Each logical worker has a part of its own length."""

    def __init__(self, size=50):
        self.size = size

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(worker, self.size - 10 * worker, workers))


class Drawn(IterableDataset):
    """An iterable dataset with a random order and random values."""

    def __iter__(self):
        info = get_worker_info()
        for index in torch.randperm(20 + 10 * (info.id if info else 0)).tolist():
            yield torch.rand(3) + index, random.random()


class Lazy(Sampler):
    """Draws each index from the process' own generator when it is asked for it."""

    def __iter__(self):
        for _ in range(50):
            yield int(torch.randint(100, ()).item())

    def __len__(self):
        return 50


class Eager(Sampler):
    """Draws in iter()."""

    def __iter__(self):
        return iter(numpy.random.permutation(103).tolist())

    def __len__(self):
        return 103


class Endless(Sampler):
    def __iter__(self):
        while True:
            yield from torch.randperm(103).tolist()


def generator():
    made = torch.Generator()
    made.manual_seed(5)
    return made


def set_offset(worker):
    get_worker_info().dataset.offset = 1000 * worker


class Offset(Numbers):
    offset = 0

    def __getitem__(self, index):
        return torch.tensor(index + self.offset)


class WithAFile(Offset):
    def __init__(self, size):
        super().__init__(size)
        self.file = open(__file__, "rb")


class Floats(Numbers):
    def __getitem__(self, index):
        return torch.tensor(index / 3)


class Placed(Numbers):
    def __getitem__(self, index):
        return int(os.environ.get("RANK", 0)) * 1000 + index


numbers = Numbers()
loader = DataLoader(Slow(), 8, num_workers=2)
another_loader = DataLoader(Slow(), 8, num_workers=2)
plain_loader = DataLoader(Numbers(), 8)
loader_of_floats = DataLoader(Floats(), 8, num_workers=1)
loader_of_rank = DataLoader(Placed(), 8, num_workers=1)
loader_of_offsets = DataLoader(Offset(24), 4, num_workers=1)
loader_with_a_file = DataLoader(WithAFile(24), 4, num_workers=1)
loader_of_copies_with_a_file = DataLoader(WithAFile(24), 4, num_workers=1, worker_init_fn=id)
loader_of_copies = DataLoader(Numbers(24), 4, num_workers=2, worker_init_fn=id)
loader_of_shards = DataLoader(Sharded(), 4, num_workers=2)


class Repeated:
    """A sampler without an end, as timm puts one around the loader's own."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


class Noise(Dataset):
    """Draws from the operating system."""

    def __getitem__(self, index):
        return numpy.random.default_rng().random()


class StreamOfNoise(IterableDataset):
    def __iter__(self):
        return iter(numpy.random.default_rng().random(20))


noise = DataLoader(Noise(), 4, sampler=[0, 1, 2, 3] * 5)
stream_of_noise = DataLoader(StreamOfNoise(), 4)
