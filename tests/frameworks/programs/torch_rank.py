"""torch.distributed as its own launcher's tests use it: env:// and tcp://, detection, local ranks.

torch_rank.py none|env|tcp: how init_process_group is told where the others are.
"""

import os
import sys

import torch
import torch.distributed as dist
from reporting import report


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    place = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    ways = {
        "none": {},
        "env": {"init_method": "env://"},
        "tcp": {"init_method": place, "rank": rank, "world_size": world},
    }
    dist.init_process_group("gloo", **ways[sys.argv[1]])
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    dist.barrier()
    report(
        rank,
        total=total.item(),
        rank=dist.get_rank(),
        world=dist.get_world_size(),
        launched=dist.is_torchelastic_launched(),
        local_rank=dist.get_node_local_rank(),
        threads=torch.get_num_threads(),
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
