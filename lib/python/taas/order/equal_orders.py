"""Ranks that all have the same shuffled samples: eight GPUs that do the work of one.

taas-run compares what they tell.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

from .shared_batches import torchs_index_sampler

_SHUFFLED = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)


def tell(loader: DataLoader[Any], name: str, digest: str) -> None:
    """The first loop over `loader` has ended.

    Told of loaders of which a rank is expected to have a part: those that shuffle.
    """
    facts = getattr(torch, "_taas_training_facts", None)  # of a preloaded rank
    sampler = torchs_index_sampler(loader)
    sampler = sampler.sampler if type(sampler) is BatchSampler else sampler
    if facts is not None and isinstance(sampler, _SHUFFLED):
        facts.shuffled(name, digest)
