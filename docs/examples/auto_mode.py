"""One script for every machine: no GPU, it trains on the CPU; one GPU, in the usual way; more, distributed.

python docs/examples/auto_mode.py                             # starts a process for each GPU where there are several
taas-run docs/examples/auto_mode.py                           # the same
taas-run --nproc-per-node 4 docs/examples/auto_mode.py        # or as many as you say
"""

import argparse
import os
import shutil
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def start_process_for_each_gpu() -> None:
    """This program again, in the place of this process: under taas-run, or under torchrun, which comes with torch."""
    launcher = shutil.which("taas-run")
    command = [launcher] if launcher else [sys.executable, "-m", "torch.distributed.run"]
    os.environ["PYTHON_EXEC"] = sys.executable  # what they start the processes with
    sys.stdout.flush()
    os.execv(command[0], [*command, "--standalone", "--nproc-per-node", str(torch.cuda.device_count()), *sys.argv])


def is_launched() -> bool:
    """taas-run (and torchrun) say so; in a plain process nobody does."""
    return "RANK" in os.environ


def is_distributed() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def choose_device() -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def make_data() -> TensorDataset:
    """Points in the plane, and whether they are in the unit circle."""
    points = torch.rand(2048, 2, generator=torch.Generator().manual_seed(0)) * 3 - 1.5
    return TensorDataset(points, (points.square().sum(1) < 1).float())


def make_loader(data: TensorDataset) -> DataLoader:
    sampler = DistributedSampler(data, seed=1) if is_distributed() else None
    generator = torch.Generator().manual_seed(1)
    return DataLoader(data, batch_size=32, sampler=sampler, shuffle=sampler is None, generator=generator)


def train(model: nn.Module, loader: DataLoader, epochs: int, device: torch.device) -> float:
    """Returns the mean loss of the last epoch, of this rank's share."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mean = 0.0
    for epoch in range(epochs):
        if isinstance(loader.sampler, DistributedSampler):
            loader.sampler.set_epoch(epoch)
        total = 0.0
        for points, inside in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(
                model(points.to(device)).squeeze(1), inside.to(device)
            )
            loss.backward()
            optimizer.step()
            total += loss.item()
        mean = total / len(loader)
    return mean


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    epochs = parser.parse_args().epochs
    if torch.cuda.device_count() > 1 and not is_launched():
        start_process_for_each_gpu()
    device = choose_device()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.manual_seed(0)
    model: nn.Module = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1)).to(device)
    if is_distributed():
        on_gpu = device.type == "cuda"
        dist.init_process_group("nccl" if on_gpu else "gloo", device_id=device if on_gpu else None)
        model = nn.parallel.DistributedDataParallel(model)
    loss = train(model, make_loader(make_data()), epochs, device)
    if not is_distributed() or dist.get_rank() == 0:
        mode = f"{dist.get_world_size()} processes" if is_distributed() else "one process"
        print(f"{mode} on {device.type}: loss {loss:.4f}", flush=True)
    if is_distributed():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
