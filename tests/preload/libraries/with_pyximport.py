"""Finders of Cython look for sources of modules that are imported."""

import sys
import pyximport

pyximport.install(language_level=3)
import torch

print([type(finder).__name__ for finder in sys.meta_path if "pyx" in type(finder).__module__], torch.ones(2).tolist())
