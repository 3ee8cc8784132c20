"""Configures the logging of the program, and calls it with its settings."""

import logging
import sys
import hydra
import torch

sys.argv[1:] = ["hydra.run.dir=.", "hydra.output_subdir=null"]


@hydra.main()
def train(settings):
    logging.getLogger("torch").error("trains %s", torch.ones(1).item())
    print(logging.getLogger("torch").getEffectiveLevel(), settings, [type(h).__name__ for h in logging.root.handlers])


train()
