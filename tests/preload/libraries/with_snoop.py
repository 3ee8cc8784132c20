"""Prints the lines that a function runs, also of one of torch's."""

import snoop

snoop.install(color=False, columns="")
import torch

with_tensors = pp(torch.ones(2).tolist())  # noqa: F821  # a builtin since then


@snoop
def double(x):
    y = x * 2
    return y.tolist()


print(double(torch.ones(2)))
