"""ddp_step_rank.py MODEL STEPS: the Python half of ddp_step.py, one rank; the twin of ddp_step.cpp."""

import json
import os
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

WARM_UP, LAYERS, BATCH = 20, 4, 32


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.output = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3), nn.Linear(16 * 2 * 2, 10)

    def forward(self, images):
        x = F.max_pool2d(torch.relu(self.first(images)), 2)
        x = F.max_pool2d(torch.relu(self.second(x)), 2)
        return self.output(x.flatten(1))


def layers(width):
    return nn.Sequential(*(part for _ in range(LAYERS) for part in (nn.Linear(width, width), nn.ReLU())))


def main(name, steps):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(rank + 1)
    if name == "convolutions":
        network, batch = Convolutions(), torch.randn(8, 1, 14, 14)
    else:
        width = 1024 if name == "wide" else 64
        network, batch = layers(width), torch.randn(BATCH, width)
    model = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    for _ in range(WARM_UP):
        step()
    torch.distributed.barrier()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        step()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    if rank == 0:
        print(
            json.dumps(
                {
                    "wall": wall / steps,
                    "cpu": cpu / steps,
                    "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                    "check": next(network.parameters()).sum().item(),
                }
            ),
            flush=True,
        )
    torch.distributed.barrier()
    os._exit(0)  # gloo's threads may outlive Python's end


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
