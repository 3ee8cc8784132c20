"""Datasets that tell about the process that they are in, importable by data workers."""

import os
import sys
import time

import numpy
import torch
import torch.distributed as dist
from torch.utils.data import Dataset, IterableDataset

SCALE = 1
TABLE = torch.ones(2)


def own_place():
    """What programs ask to find out which rank they are."""
    group = (dist.get_rank(), dist.get_world_size(), dist.get_backend()) if dist.is_initialized() else None
    return [
        group,
        *(
            os.environ.get(name)
            for name in (
                "RANK",
                "WORLD_SIZE",
                "LOCAL_RANK",
                "LOCAL_WORLD_SIZE",
                "NODE_RANK",
                "MASTER_ADDR",
                "MASTER_PORT",
                "SLURM_PROCID",
            )
        ),
    ]


def own_settings():
    """What a program sets for its process, and data workers have."""
    return [
        os.environ.get("TAASTEST_SET"),
        os.environ.get("HOME"),
        time.localtime(0)[:5],
        os.getcwd(),
        sys.argv,
        sys.path[0],
        str(torch.get_default_dtype()),
    ]


def limits_of_pil():
    """Two that programs set."""
    from PIL import Image, ImageFile

    return Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES


class Tells(Dataset):
    """Its samples are what `ask` says in the process that makes them."""

    def __init__(self, ask):
        self.ask = ask

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return index, self.ask()


class OfItsRank(IterableDataset):
    """Shards by rank, as webdataset and others do."""

    def __iter__(self):
        for number in range(24):
            if number % int(os.environ["WORLD_SIZE"]) == int(os.environ["RANK"]):
                yield number, dist.get_rank() if dist.is_initialized() else -1


class Sums(Dataset):
    """Sums whose last bits depend on how many threads torch computes with."""

    def __init__(self):
        self.values = torch.randn(1 << 20, generator=torch.Generator().manual_seed(3))

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.values.roll(index).sum(), torch.get_num_threads()


class Scaled(Dataset):
    """Depends on globals of its module."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index * SCALE, TABLE.sum()


def communicate():
    dist.all_reduce(torch.ones(1))


def as_it_is(samples):
    return samples


class InMemory(Dataset):
    """A tensor, an array and a view of the tensor: samples say which memory they lie in, and change it."""

    def __init__(self, elements=1 << 20):
        self.tensor = torch.arange(elements, dtype=torch.int64)
        self.array = numpy.arange(elements, dtype=numpy.int32)
        self.view = self.tensor[5:]

    def __len__(self):
        return 64

    def __getitem__(self, index):
        self.view[0] += 1
        return (
            os.getpid(),
            int(self.tensor[5]),
            [area_of(self.tensor.data_ptr() + 8000), area_of(self.array.ctypes.data)],
        )


def area_of(address):
    """What the kernel has at this address of the process: permissions, inode, name."""
    for line in open("/proc/self/maps"):
        begin, end = (int(each, 16) for each in line.split()[0].split("-"))
        if begin <= address < end:
            parts = line.split(maxsplit=5)
            return parts[1], int(parts[4]), parts[5].strip() if len(parts) > 5 else ""
    return None
