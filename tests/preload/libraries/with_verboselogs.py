"""Loggers that are made from here on, torch's too, are of another class."""

import logging
import verboselogs

verboselogs.install()
import torch

print(type(logging.getLogger("torch")).__name__, torch.ones(2).tolist())
