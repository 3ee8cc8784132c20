"""Trains on objects that each take 50 ms to arrive. More CPU machines wait for more of them at the same time:

python object_server.py --port 8017 &
taas-run --gpus 1 --cpus 1 --data-cores 1 train.py --steps 60
taas-run --gpus 1 --cpus 8 --data-cores 1 train.py --steps 480
"""

from __future__ import annotations

import argparse
import time

import taas
import torch
from object_dataset import ObjectDataset
from torch import nn
from torch.utils.data import DataLoader

BATCH = 4


def train(loader: DataLoader, model: nn.Module) -> float:
    """One epoch. Returns its steps per second from the first quarter on, when all data workers are there."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    first, began = len(loader) // 4, time.perf_counter()
    for step, (images, labels) in enumerate(loader):
        if step == first:
            began = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    return (len(loader) - 1 - first) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="http://127.0.0.1:8017")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is tiny
    dataset = ObjectDataset(options.url, options.steps * BATCH)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, generator=torch.Generator().manual_seed(0))
    with taas.register(loader):
        rate = train(loader, nn.Linear(28 * 28, 10))
    print(f"{options.steps} steps, {rate:.1f} per second", flush=True)


if __name__ == "__main__":
    main()
