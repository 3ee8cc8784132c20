import concurrent
import importlib
import sys

print([name for name in ("concurrent.futures", "importlib.util") if name in sys.modules])
print(hasattr(concurrent, "futures"), hasattr(importlib, "util"))
import numpy

print(
    "torch" in sys.modules,
    numpy.__name__,
    sorted(name for name in sys.modules if name.startswith(("numpy.", "concurrent."))),
)
import torch
import torch.nn.functional as F

print(F is torch.nn.functional is sys.modules["torch.nn.functional"], importlib.import_module("torch") is torch)
print(importlib.util.find_spec("torch").origin == torch.__file__, importlib.util.find_spec("array"))
