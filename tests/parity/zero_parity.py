"""Trains the models of parity_models.py with Python's whole SGD and in C++ with ZeroRedundancyOptimizer.

Both wrap the model in their DistributedDataParallel. The parameters and buffers of every rank are compared, bit by bit.

    zero_parity.py CPP_PROGRAM [--ranks 2 4] [--only PART_OF_A_CASE]
"""

import parity_program
import torch
import torch.nn.functional as F
from parity_models import INPUTS, MODELS, NAMES
from parity_program import STEPS, load_initial
from torch import nn

SMALL = 0.001  # MiB: many buckets


def all_cases():
    """Without the model that has bfloat16 in it, which libtorch's SGD rounds otherwise than Python's."""
    return {model: (model,) for model in NAMES if model != "tied"}


def train(words, rank, initial, data):
    (model_name,) = words
    net = MODELS[model_name]()
    if model_name == "sparse":
        net.words.sparse = False  # momentum takes dense gradients only
    load_initial(net, initial)
    model = nn.parallel.DistributedDataParallel(
        net, bucket_cap_mb=SMALL, find_unused_parameters=model_name == "branched", broadcast_buffers=False
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        batch = data[step, rank]
        scores = model(batch[:, :INPUTS].contiguous(), (step + rank) % 3 == 0)
        F.cross_entropy(scores.float(), batch[:, INPUTS].long()).backward()
        optimizer.step()
        net.zero_grad()
    return net


if __name__ == "__main__":
    parity_program.main(__doc__, __file__, all_cases(), train)
