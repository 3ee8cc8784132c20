"""A loader that `--loader prepared:loader` can prepare: its order is known without a run around it."""

import os

import torch

SAMPLES, BATCH, SHAPE = 4096, 64, (1, 28, 28)


class Digits(torch.utils.data.Dataset):
    def __init__(self):
        self.images = torch.rand((SAMPLES, *SHAPE), generator=torch.Generator().manual_seed(3))

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return self.images[index] * 2 - 1, index % 10


dataset = Digits()
sampler = torch.utils.data.DistributedSampler(
    dataset, num_replicas=int(os.environ.get("WORLD_SIZE", "1")), rank=int(os.environ.get("RANK", "0"))
)
loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, sampler=sampler)
