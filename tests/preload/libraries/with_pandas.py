"""Imports its C libraries before torch."""

import sys
import pandas

table = pandas.DataFrame({"a": [1, 2, 3]})
import torch

print(torch.tensor(table["a"].to_numpy(copy=True)).sum().item(), [type(f).__name__ for f in sys.meta_path][-2:])
