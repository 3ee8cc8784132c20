"""Trains the models of parity_models.py with Python's whole optimizer and in C++ with taas' ZeroOptimizer.

Python has its DistributedDataParallel; the state of ZeroOptimizer is spread over the ranks. The parameters and buffers
of every rank are compared, bit by bit.

    zero_parity.py CPP_PROGRAM [--ranks 2 4] [--only PART_OF_A_CASE]
"""

import functools

import parity_program
import torch
import torch.nn.functional as F
from parity_models import INPUTS, MODELS, NAMES
from parity_program import STEPS, load_initial
from torch import nn

SMALL = 0.001  # MiB: many buckets


def make_optimizer(name, parameters):
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=0.01)
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def all_cases():
    return {
        f"{stage}.{optimizer}.{model}": (stage, optimizer, model)
        for stage in "12"
        for optimizer in ("sgd", "adamw")
        for model in NAMES
    }


@functools.cache  # both stages are compared with it
def trained(optimizer_name, model_name, rank, initial, data):
    net = MODELS[model_name]()
    if model_name == "sparse":
        net.words.sparse = False  # a sharded optimizer takes dense gradients only
    load_initial(net, initial)
    model = nn.parallel.DistributedDataParallel(
        net, bucket_cap_mb=SMALL, find_unused_parameters=model_name == "branched", broadcast_buffers=False
    )
    optimizer = make_optimizer(optimizer_name, net.parameters())
    for step in range(STEPS):
        batch = data[step, rank]
        scores = model(batch[:, :INPUTS].contiguous(), (step + rank) % 3 == 0)
        F.cross_entropy(scores.float(), batch[:, INPUTS].long()).backward()
        optimizer.step()
        net.zero_grad()
    return net


def train(words, rank, initial, data):
    _, optimizer_name, model_name = words
    return trained(optimizer_name, model_name, rank, initial, data)


if __name__ == "__main__":
    parity_program.main(__doc__, __file__, all_cases(), train)
