"""What ranks of the benchmark's measure "step" do: step_rank.py FOLDER. A model under DDP, an optimizer, one step of both."""

import pathlib
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
model(torch.randn(64, 512)).square().mean().backward()
optimizer.step()
dist.barrier()
(pathlib.Path(sys.argv[1]) / f"stepped-{dist.get_rank()}").write_text(str(time.monotonic_ns()))
dist.destroy_process_group()
