import os, sys, time
import torch, torch.distributed as dist

def load(path):
    if dist.get_rank() == 3:
        raise ValueError(f"bad shape in {path}: [10, 4], expected [10, 8]")

dist.init_process_group("gloo")
for step in range(1, 4):
    loss = torch.ones(1) / step
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        print(f"step {step} loss {loss.item() / 8:.3f}")
if "--resume" in sys.argv:
    load("weights.pt")
dist.destroy_process_group()
