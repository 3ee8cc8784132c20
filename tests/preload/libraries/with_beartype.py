"""Calls of a module are checked, by a hook that is in place before torch is imported."""

from beartype.claw import beartype_package

beartype_package("colorsys")
import torch
import colorsys

print(type(colorsys.__loader__).__name__, torch.ones(2).tolist())
