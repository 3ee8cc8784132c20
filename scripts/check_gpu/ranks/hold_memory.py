"""Takes all but LEAVE bytes of a GPU's memory, says so, and keeps it until its input ends."""

import os
import sys

import torch

free, _ = torch.cuda.mem_get_info()
held = torch.empty(free - int(os.environ["LEAVE"]), dtype=torch.uint8, device="cuda")
print(f"HELD {held.numel()}", flush=True)
sys.stdin.read()
