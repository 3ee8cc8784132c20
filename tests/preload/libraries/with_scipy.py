"""A solution by its own BLAS, before torch's is there."""

import scipy.linalg
import torch

print(scipy.linalg.solve([[2.0, 0], [0, 4]], [2, 4]).tolist(), torch.linalg.solve(torch.eye(2), torch.ones(2)).tolist())
