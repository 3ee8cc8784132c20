"""A bar, of a class that torch has imported, too."""

import sys
import tqdm

print("torch" in sys.modules, sorted(name for name in sys.modules if name.startswith("tqdm."))[:3])
import torch

bar = tqdm.tqdm([1, 2], file=sys.stdout, bar_format="{desc} {n_fmt}/{total_fmt}")
print([torch.ones(x).sum().item() for x in bar], sorted(name for name in sys.modules if name.startswith("tqdm.")))
