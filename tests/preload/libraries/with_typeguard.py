"""A module is instrumented, by a finder that is in place before torch is imported."""

from typeguard import install_import_hook

install_import_hook(["colorsys"])
import torch
import colorsys

print(type(colorsys.__loader__).__name__, type(torch.nn.functional.__loader__).__name__, torch.ones(2).tolist())
