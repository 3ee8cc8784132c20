"""Takes the place of sys.stderr and of sys.excepthook."""

import sys
import pretty_errors

pretty_errors.mono()
import torch

print(sys.excepthook.__module__, type(sys.stderr).__name__)
torch.ones(2) @ torch.ones(3)
