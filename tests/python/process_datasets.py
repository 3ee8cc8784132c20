"""Datasets that tell about the process that they are in, importable by data workers."""

import torch
from torch.utils.data import Dataset

SCALE = 1
TABLE = torch.ones(2)


class Tells(Dataset):
    """Its samples are what `ask` says in the process that makes them."""

    def __init__(self, ask):
        self.ask = ask

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return index, self.ask()


class Scaled(Dataset):
    """Depends on globals of its module."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index * SCALE, TABLE.sum()


def as_it_is(samples):
    return samples


def area_of(address):
    """What the kernel has at this address of the process: permissions, inode, name."""
    for line in open("/proc/self/maps"):
        begin, end = (int(each, 16) for each in line.split()[0].split("-"))
        if begin <= address < end:
            parts = line.split(maxsplit=5)
            return parts[1], int(parts[4]), parts[5].strip() if len(parts) > 5 else ""
    return None
