"""Records a run without a server, with gradients of a model that is watched."""

import sys
import wandb

print(type(sys.stdout).__name__, "torch" in sys.modules)
import torch

run = wandb.init(mode="disabled")
model = torch.nn.Linear(2, 1)
run.watch(model, log="all")
model(torch.ones(1, 2)).sum().backward()
run.log({"loss": torch.ones(1)})
print(run.disabled, sorted(model._forward_hooks))
run.finish()
