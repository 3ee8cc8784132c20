"""An all-reduce of torch over gloo, and rank 0 says its result."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1) * dist.get_rank()
dist.all_reduce(total)
if dist.get_rank() == 0:
    print("total", int(total), "of", dist.get_world_size())
dist.destroy_process_group()
