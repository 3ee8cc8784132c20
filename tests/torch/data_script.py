"""Training with a registered loader, as a notebook's cells have it; prints a digest of the trained parameters.

data_script.py [--plain] [--augment] [--epochs N]: without register(); with random augmentation.
"""

import argparse
import hashlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

SAMPLES = 384


class DataSet(torch.utils.data.Dataset):
    def __init__(self, augment: bool):
        generator = torch.Generator().manual_seed(5)
        self.images = torch.rand((SAMPLES, 1, 12, 12), generator=generator)
        self.labels = torch.randint(10, (SAMPLES,), generator=generator)
        self.augment = augment

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        image = self.images[index]
        return (image + 0.1 * torch.randn_like(image) if self.augment else image), self.labels[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--augment", action="store_true")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(1)

    data_set = DataSet(options.augment)
    sampler = DistributedSampler(data_set)
    data_loader = DataLoader(data_set, batch_size=16, sampler=sampler)
    if not options.plain:
        import taas

        taas.register(data_loader)

    model = DistributedDataParallel(
        nn.Sequential(
            nn.Conv2d(1, 8, 3),
            nn.ReLU(),
            nn.Dropout2d(0.25),
            nn.Flatten(),
            nn.Linear(800, 32),
            nn.Dropout(0.5),
            nn.Linear(32, 10),
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    samples = 0
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for images, labels in data_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            samples += len(labels)

    if not options.plain:
        taas.unregister(data_loader)
    parameters = torch.cat([p.detach().flatten() for p in model.parameters()])
    if dist.get_rank() == 0:
        print(f"trained on {samples} samples: {hashlib.sha256(parameters.numpy().tobytes()).hexdigest()}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
