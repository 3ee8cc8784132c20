"""Distributed data parallel: a process for each replica of the model; gradients are averaged between them.

    python docs/examples/parallelism/toy_ddp.py                            # spawns its own processes
    taas-run --nproc-per-node 2 docs/examples/parallelism/toy_ddp.py       # taas-run has started them

Each rank prints its loss, since ranks have batches of their own, and the sum of its weights, which is the same on all.
"""

import argparse
import os
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

INPUTS, HIDDEN, OUTPUTS, BATCH_SIZE = 6, 12, 3, 16


class TwoLayers(nn.Sequential):
    """A model so small that its numbers can be looked at."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(INPUTS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, OUTPUTS))


def draw_batch(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Points, and the products that the model is to learn. They are drawn on the CPU, so that GPUs see the same."""
    points = torch.randn(BATCH_SIZE, INPUTS)
    return points.to(device), (points[:, :OUTPUTS] * points[:, OUTPUTS:]).to(device)


def choose_device(local_rank: int) -> torch.device:
    """A GPU of its own for each rank, or the CPU for all."""
    return torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")


def train(device: torch.device, steps: int, **meeting_point: Any) -> None:
    """What a rank does. Without a meeting point it is in the environment, where taas-run and torchrun have put it."""
    on_gpu = device.type == "cuda"
    dist.init_process_group("nccl" if on_gpu else "gloo", device_id=device if on_gpu else None, **meeting_point)
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(TwoLayers().to(device), device_ids=[device] if on_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        points, products = draw_batch(device)
        loss = nn.functional.mse_loss(model(points), products)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weights = sum(weight.detach().double().sum().item() for weight in model.parameters())
    print(
        f"rank {dist.get_rank()} of {dist.get_world_size()} on {device}: loss {loss.item():.4f}, weights {weights:.6f}",
        flush=True,
    )
    dist.destroy_process_group()


def train_in_spawned_process(rank: int, processes: int, port: int, steps: int) -> None:
    train(choose_device(rank), steps, init_method=f"tcp://localhost:{port}", rank=rank, world_size=processes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument(
        "--processes", type=int, default=torch.cuda.device_count() or 2, help="to spawn, without a launcher"
    )
    parser.add_argument("--port", type=int, default=29517, help="where these meet on this machine")
    options = parser.parse_args()
    if "RANK" in os.environ:
        train(choose_device(int(os.environ["LOCAL_RANK"])), options.steps)
    else:
        mp.spawn(train_in_spawned_process, (options.processes, options.port, options.steps), nprocs=options.processes)


if __name__ == "__main__":
    main()
