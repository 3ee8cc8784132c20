"""A script as one writes it for torchrun: nothing in it knows of taas-run."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(20):
        inputs = torch.randn(8, 10, generator=generator)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    gathered = [torch.empty_like(flat) for _ in range(world)]
    dist.all_gather(gathered, flat)
    assert all(torch.equal(flat, other) for other in gathered), "ranks differ"
    if rank == 0:
        print(
            f"trained on {world} ranks, argv {sys.argv[1:]}, elastic {dist.is_torchelastic_launched()}, "
            f"restart {os.environ['TORCHELASTIC_RESTART_COUNT']}"
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
