"""What ranks of the benchmark do: rank.py FOLDER MODE.

MODE is one of end, fail (rank 3 fails in its first generation), hold.
"""

import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist

folder, mode = pathlib.Path(sys.argv[1]), sys.argv[2]
generation = int(os.environ["TORCHELASTIC_RESTART_COUNT"])

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
if total.item() != world * (world + 1) / 2:
    sys.exit(f"the sum is wrong: {total}")
note = folder / f"note-{rank}"
note.write_text(f"{time.monotonic_ns()} {os.getpid()}")
note.rename(folder / f"summed-{generation}-{rank}")

if mode == "fail" and generation == 0:
    while len(list(folder.glob("summed-0-*"))) < world:
        time.sleep(0.001)
    if rank == 3:
        (folder / "failed").write_text(f"{time.monotonic_ns()}")
        os._exit(1)
    time.sleep(600)
if mode == "hold":
    while not (folder / "go").exists():
        time.sleep(0.01)
dist.destroy_process_group()
if mode == "fail":
    os._exit(0)  # how ranks end is not measured, and torch's gloo now and then aborts a Python that ends
