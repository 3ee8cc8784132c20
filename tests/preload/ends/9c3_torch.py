import atexit

import torch

atexit.register(print, "registered after torch was imported")
raise RuntimeError(torch.ones(2))
