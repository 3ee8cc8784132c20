"""What the program has set before the loop, and what workers are to know of it."""

import os
import random
import sys
import tempfile

import torch
from differential.pipeline import pipeline
from pipelines.everyday import Made
from torch.utils.data import DataLoader, get_worker_info


def loader_of(make, workers, **options):
    return DataLoader(Made(make, 24), 4, num_workers=workers, collate_fn=list, **options)


@pipeline()
def a_variable_of_the_environment(workers):
    os.environ["DATA_MODE"] = "debug"
    return loader_of(lambda index: os.environ.get("DATA_MODE"), workers)


@pipeline()
def the_default_dtype(workers):
    torch.set_default_dtype(torch.float64)
    return loader_of(lambda index: torch.tensor([index / 3]), workers)


@pipeline()
def the_folder(workers):
    os.chdir(tempfile.gettempdir())
    with open("here.txt", "w") as file:
        file.write("here")
    return loader_of(lambda index: open("here.txt").read(), workers)


@pipeline()
def arguments_and_path(workers):
    sys.argv = ["train.py", "--scale", "3"]
    sys.path.insert(0, "/nowhere/at/all")
    return loader_of(lambda index: (tuple(sys.argv), sys.path[0]), workers)


@pipeline()
def a_set_of_strings(workers):
    words = [f"word {number}" for number in range(50)]
    return loader_of(lambda index: (list(set(words))[:5], hash("a word")), workers)


@pipeline()
def a_sum_by_all_threads(workers):
    def summed(index):
        return torch.get_num_threads(), torch.rand(300_000, generator=torch.Generator().manual_seed(index)).sum()

    return loader_of(summed, workers)


@pipeline(num_workers=(2,))
def a_seed_of_worker_init_fn(workers):
    def seeded(worker):
        random.seed(worker)
        get_worker_info().dataset.drawn = random.Random(worker).random()

    return loader_of(lambda index: index, workers, worker_init_fn=seeded)


class Curriculum(Made):
    strength = 0

    def __init__(self, size):
        super().__init__(lambda index: index, 24)
        self.cargo = torch.zeros(size, dtype=torch.uint8)

    def __getitem__(self, index):
        return index, self.strength


def strengthen(loader, epoch):
    loader.dataset.strength = epoch * 10


@pipeline(before_epoch=strengthen, epochs=3)
def an_attribute_changes_between_epochs(workers):
    return DataLoader(Curriculum(1), 4, num_workers=workers)


@pipeline(before_epoch=strengthen, epochs=3)
def an_attribute_of_a_large_dataset_changes_between_epochs(workers):
    return DataLoader(Curriculum(5 << 20), 4, num_workers=workers)


class Inner:
    strength = [0]


class Mixing(Curriculum):
    """Strength lies in an object of an object; its weights are a list."""

    def __init__(self, size):
        super().__init__(size)
        self.transform = Inner()
        self.transform.settings = {"weights": [0.1, 0.2]}

    def __getitem__(self, index):
        return index, self.transform.settings["weights"][0]


def mix(loader, epoch):
    loader.dataset.transform.settings["weights"][0] = epoch / 2


@pipeline(before_epoch=mix, epochs=3)
def weights_deep_in_a_large_dataset_change(workers):
    return DataLoader(Mixing(5 << 20), 4, num_workers=workers)


@pipeline(before_epoch=lambda loader, epoch: os.environ.update(EPOCH=str(epoch)), epochs=3)
def the_environment_changes_between_epochs(workers):
    return loader_of(lambda index: os.environ["EPOCH"], workers)


@pipeline(
    num_workers=(2,),
    before_epoch=strengthen,
    epochs=3,
    resumes=False,
)
def persistent_workers_keep_the_first_strength(workers):
    return DataLoader(Curriculum(1), 4, num_workers=workers, persistent_workers=True)
