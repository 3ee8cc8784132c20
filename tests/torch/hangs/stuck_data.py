"""Rank 0 waits in a collective for rank 1, whose data worker waits for ever."""

import threading

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

import taas


class Stuck(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        if index == 12:
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()  # held
        return torch.ones(2)


loader = DataLoader(Stuck(), batch_size=2)
taas.register(loader)

if __name__ == "__main__":
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        for _ in loader:  # waits for its data
            pass
    dist.all_reduce(torch.ones(1))
