"""Insists on being imported before torch, which it patches."""

import comet_ml
import torch

experiment = comet_ml.OfflineExperiment(disabled=True)
torch.ones(2, requires_grad=True).sum().backward()
print(comet_ml.__name__, torch.ones(2).tolist(), experiment.alive)
