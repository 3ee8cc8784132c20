"""Replicas over two devices each: a model cut in two under distributed data parallel.

    taas-run --gpus 4 --devices-per-rank 2 docs/examples/parallelism/toy_two_devices.py    # 2 ranks with 2 GPUs each
    taas-run --nproc-per-node 2 docs/examples/parallelism/toy_two_devices.py               # without GPUs: the CPU twice

DDP averages the gradients of each half on the device where it is.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

DEVICES = 2  # of a replica
INPUTS, HIDDEN, OUTPUTS, BATCH_SIZE = 6, 12, 3, 16


class TwoLayers(nn.Module):
    """A layer on each device; what goes between them is moved in forward(), and its gradient comes back that way."""

    def __init__(self, first: torch.device, second: torch.device) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.lower = nn.Linear(INPUTS, HIDDEN).to(first)
        self.upper = nn.Linear(HIDDEN, OUTPUTS).to(second)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.lower(batch.to(self.first)))
        return self.upper(hidden.to(self.second))


def own_gpus(visible: int, per_rank: int, local_rank: int, local_world_size: int) -> range:
    """Numbers of this rank's GPUs, or none where there are too few.

    With --devices-per-rank it sees its own ones alone, from 0 on. Otherwise all ranks see all GPUs, and local rank 0
    has the first two.
    """
    if per_rank > 1:
        return range(DEVICES if visible >= DEVICES else 0)
    begin = local_rank * DEVICES
    return range(begin, begin + DEVICES) if visible >= local_world_size * DEVICES else range(0)


def choose_devices() -> list[torch.device]:
    gpus = own_gpus(
        torch.cuda.device_count(),
        int(os.environ.get("TAAS_DEVICES_PER_RANK", "1")),
        int(os.environ["LOCAL_RANK"]),
        int(os.environ["LOCAL_WORLD_SIZE"]),
    )
    return [torch.device("cuda", index) for index in gpus] or [torch.device("cpu")] * DEVICES


def train(devices: list[torch.device], steps: int) -> None:
    torch.manual_seed(dist.get_rank())
    # A module over several devices takes no device_ids: DDP leaves inputs to the module.
    model = DistributedDataParallel(TwoLayers(*devices), device_ids=None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        points = torch.randn(BATCH_SIZE, INPUTS)
        products = points[:, :OUTPUTS] * points[:, OUTPUTS:]  # what the model is to learn
        loss = nn.functional.mse_loss(model(points), products.to(devices[-1]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weights = sum(weight.detach().double().sum().item() for weight in model.parameters())
    where = " and ".join(map(str, devices))
    print(
        f"rank {dist.get_rank()} of {dist.get_world_size()} on {where}: loss {loss.item():.4f}, weights {weights:.6f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1)
    steps = parser.parse_args().steps
    if "RANK" not in os.environ:
        parser.error("start it as: taas-run --nproc-per-node 2 toy_two_devices.py")
    devices = choose_devices()
    on_gpu = devices[0].type == "cuda"
    if on_gpu:
        torch.cuda.set_device(devices[0])
    dist.init_process_group("nccl" if on_gpu else "gloo", device_id=devices[0] if on_gpu else None)
    train(devices, steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
