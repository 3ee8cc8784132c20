"""What the program has set before the loop, and what workers are to know of it."""

import random

import torch
from differential.pipeline import pipeline
from own_datasets import Numbers
from pipelines.everyday import Made
from torch.utils.data import DataLoader, get_worker_info


@pipeline()
def the_default_dtype(workers):
    torch.set_default_dtype(torch.float64)
    return DataLoader(Made(lambda index: torch.tensor([index / 3]), 24), 4, num_workers=workers, collate_fn=list)


def seeded(worker):
    random.seed(worker)
    get_worker_info().dataset.drawn = random.Random(worker).random()


class Drawn(Numbers):
    def __getitem__(self, index):
        return index, self.drawn


@pipeline(num_workers=(2,))
def a_seed_of_worker_init_fn(workers):
    return DataLoader(Drawn(24), 4, num_workers=workers, worker_init_fn=seeded)


class Curriculum(Numbers):
    """What changes is deep inside, beside an array of 5 MiB."""

    def __init__(self):
        super().__init__(24)
        self.settings, self.cargo = {"strength": [0]}, torch.zeros(5 << 20, dtype=torch.uint8)

    def __getitem__(self, index):
        return index, self.settings["strength"][0]


def strengthen(loader, epoch):
    loader.dataset.settings["strength"][0] = epoch * 10


@pipeline(before_epoch=strengthen, epochs=3)
def a_large_dataset_changes_between_epochs(workers):
    return DataLoader(Curriculum(), 4, num_workers=workers)
