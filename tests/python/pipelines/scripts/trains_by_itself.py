"""A training script: what it defines is in its main module."""

import functools
import pickle

import torch
from differential.pipeline import pipeline
from torch.utils.data import DataLoader, Dataset

SCALE = 3


@functools.lru_cache(maxsize=None)
def table(size):
    return tuple(number * SCALE for number in range(size))


def augment(value, *, by=1):
    return value + by * SCALE


class Samples(Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 30

    @functools.cached_property
    def rows(self):
        return [torch.full((2,), number) for number in table(30)]

    @functools.singledispatchmethod
    def named(self, value):
        return f"{value}"

    def __getitem__(self, index):
        return self.transform(self.rows[index]), table(30)[index], self.named(index)


@pipeline()
def classes_of_the_script(workers):
    return DataLoader(Samples(functools.partial(augment, by=2)), 4, shuffle=True, num_workers=workers)


@pipeline()
def lambdas_of_the_script(workers):
    return DataLoader(
        Samples(lambda value: value * SCALE),
        4,
        num_workers=workers,
        collate_fn=lambda samples: [each[0] for each in samples],
    )


class Computed(Samples):
    """Pickles functions and classes of the script by their names, as pools of processes do."""

    def __getitem__(self, index):
        return pickle.loads(pickle.dumps(augment))(index), pickle.loads(pickle.dumps(Computed)).__name__


@pipeline(epochs=1)
def a_pool_of_functions(workers):
    return DataLoader(Computed(None), 4, num_workers=workers, collate_fn=list)
