"""Numbers, in a registered loader that data workers can prepare. Who makes a batch leaves its host's name in HOSTS."""

import os
import pathlib
import socket

import taas
import torch
from torch.utils.data import DataLoader, Dataset

SAMPLES = 64


class Numbers(Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        (pathlib.Path(os.environ["HOSTS"]) / socket.gethostname()).touch()
        return torch.tensor(index)


loader = DataLoader(Numbers(), batch_size=8, num_workers=1)
taas.register(loader)
