"""Its libraries are loaded before torch's."""

import pyarrow
import torch

print(pyarrow.array([1, 2]).to_pylist(), torch.ones(2).tolist())
