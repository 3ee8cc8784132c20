"""Seeds of batches: functions of what a batch is, never of who makes it or when."""

from __future__ import annotations

import hashlib
import random
import struct
import sys
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader

_BATCH, _WORKER, _PART = 0, 1, 2


class Seeds(NamedTuple):
    """Where the seeds of one rank's epoch over one loader come from.

    `initial` (64 bits) is what the program was seeded with, `rank` the rank's number in the run, `ordinal` the loader's
    place among the registered ones, `epoch` the count of loops over it.
    """

    initial: int
    rank: int
    ordinal: int
    epoch: int

    @classmethod
    def of_loader(cls, loader: DataLoader[Any], rank: int, ordinal: int, epoch: int) -> Seeds:
        """As they are now: the program is seeded by the loader's generator, or torch's."""
        initial = loader.generator.initial_seed() if loader.generator is not None else torch.initial_seed()
        return cls(initial & 0xFFFFFFFFFFFFFFFF, rank, ordinal, epoch)

    def of_batch(self, number: int) -> int:
        """64 bits for the batch with this number, counted from 0."""
        return self._mixed(_BATCH, number)

    def of_worker(self, logical_worker: int) -> int:
        """64 bits for a logical worker: what worker_init_fn and an iterable dataset's iter() draw from."""
        return self._mixed(_WORKER, logical_worker)

    def of_part(self, number: int, rank: int) -> int:
        """64 bits for making the batch with this number that is dealt to `rank`, when its samples are there."""
        return self._mixed(_PART, number << 24 ^ rank)

    def _mixed(self, purpose: int, which: int) -> int:
        words = struct.pack("<6Q", purpose, *self, which & 0xFFFFFFFFFFFFFFFF)
        return int.from_bytes(hashlib.blake2b(words, digest_size=8, person=b"taas seed").digest(), "little")


def seed_all(seed: int) -> None:
    """Seeds torch's default generator, random, and numpy once it is imported.

    Not torch.manual_seed: that one also seeds accelerators, and starts them up.
    """
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed((seed ^ (seed >> 32)) & 0xFFFFFFFF)
