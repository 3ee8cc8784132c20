"""torch is not imported before its first use, and what was there before then."""

import sys
import lazy_loader

torch, opt_einsum = lazy_loader.load("torch"), lazy_loader.load("opt_einsum")
print(type(torch).__name__, "torch" in sys.modules, "torch.nn" in sys.modules, "decimal" in sys.modules)
print(torch.ones(2).sum().item(), type(torch).__name__, "torch.nn" in sys.modules, opt_einsum.__version__)
import torch as again

print(again is torch, again.nn.Linear(1, 1), torch.__spec__)
