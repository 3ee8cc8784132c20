"""Data parallel training that survives a restart.

    taas-run --gpus 8 train.py --epochs 10
"""

import argparse
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from dataset import DATASETS
from model import make_model

OUTPUT = pathlib.Path(os.environ.get("TAAS_OUTPUT_DIR", "output"))
CHECKPOINT = OUTPUT / "checkpoint.pt"


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", choices=sorted(DATASETS), default="dummy")
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    return parser.parse_args()


def connect() -> torch.device:
    """Joins the other ranks; returns the device of this one."""
    if not torch.cuda.is_available():
        dist.init_process_group("gloo")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return device


def save(model: nn.Module, optimizer: torch.optim.Optimizer, epoch: int) -> None:
    """By rank 0 alone, under its name only when it is whole: load() may find what a killed process has left."""
    if dist.get_rank() == 0:
        OUTPUT.mkdir(parents=True, exist_ok=True)
        unfinished = CHECKPOINT.with_suffix(".part")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, unfinished)
        unfinished.replace(CHECKPOINT)


def load(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """What an earlier start of this run saved; returns the epoch to begin with."""
    if not CHECKPOINT.exists():
        return 0
    saved = torch.load(CHECKPOINT, map_location="cpu")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["epoch"] + 1


def train_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, device: torch.device) -> float:
    """Returns the mean loss over all ranks."""
    total = torch.zeros(1, device=device)
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    return total.item() / len(loader) / dist.get_world_size()


def main() -> None:
    options = read_options()
    device = connect()
    torch.manual_seed(0)
    plain = make_model().to(device)
    model = DistributedDataParallel(plain)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    sampler = DistributedSampler(data := DATASETS[options.dataset](options.samples))
    loader = DataLoader(data, batch_size=options.batch_size, sampler=sampler)
    for epoch in range(load(plain, optimizer), options.epochs):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, loader, optimizer, device)
        save(plain, optimizer, epoch)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.4f} on {dist.get_world_size()} ranks", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
