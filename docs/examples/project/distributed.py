"""This process' place among the ranks, and its share of the data."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler, Subset

from windows import Windows


def connect() -> torch.device:
    """Joins the other ranks; without a launcher this process is the only one. Returns its device."""
    alone: dict[str, Any] = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    if not torch.cuda.is_available():
        dist.init_process_group("gloo", **alone)
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device, **alone)
    return device


class ResumableSampler(DistributedSampler[int]):
    """Deals the samples over the ranks; leaves out those that an interrupted epoch has had."""

    done = 0  # samples of all ranks

    def __iter__(self) -> Iterator[int]:
        return itertools.islice(super().__iter__(), self.done // self.num_replicas, None)

    def __len__(self) -> int:
        return max(0, super().__len__() - self.done // self.num_replicas)


def share_of_examples(windows: Windows) -> "Subset[Any]":
    """This rank's part, in which each example has all of its windows, and none is there twice."""
    _, numbers = np.unique(windows.rows[:, 0], return_inverse=True)
    return Subset(windows, np.flatnonzero(numbers % dist.get_world_size() == dist.get_rank()).tolist())
