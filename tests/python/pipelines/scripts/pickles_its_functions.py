"""A script whose dataset has functions of the script pickled by their names, as pools of processes do."""

import pickle

from differential.pipeline import pipeline
from torch.utils.data import DataLoader, Dataset

SCALE = 3


def scaled(index):
    return index * SCALE


def shifted(index):
    return scaled(index) + 1


class Computed(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return pickle.loads(pickle.dumps(shifted))(index), pickle.loads(pickle.dumps(Computed)).__name__


@pipeline(epochs=1)
def a_pool_of_functions(workers):
    return DataLoader(Computed(), 4, num_workers=workers, collate_fn=list)
