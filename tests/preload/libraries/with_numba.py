"""A compiled loop, before torch is imported."""

import numba
import numpy


@numba.njit
def total(x):
    s = 0.0
    for v in x:
        s += v
    return s


print(total(numpy.ones(3)))
import torch

print(total(torch.ones(3).numpy()), numba.get_num_threads() > 0)
