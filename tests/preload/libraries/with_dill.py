"""Registers its own reducers, with which functions and tensors are stored."""

import copyreg
import pickle
import dill
import torch

print(dill.loads(dill.dumps(lambda: torch.ones(2).tolist()))(), len(copyreg.dispatch_table) > 0)
print(dill.extend.__module__, pickle.Pickler, dill.detect.errors(torch.ones(1)), dill.settings["recurse"])
