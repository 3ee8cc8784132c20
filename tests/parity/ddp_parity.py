"""Trains the same model on the same data with Python's DistributedDataParallel and with taas' in C++, and
compares the parameters and buffers of every rank after ten steps, bit by bit, for each option.

    ddp_parity.py CPP_PROGRAM [--ranks 2 4] [--launcher "taas-run --gpus {ranks}"]
"""

import contextlib

import parity_program
import torch
import torch.nn.functional as F
from parity_program import BATCH, CLASSES, STEPS, load_initial
from torch import nn

SIDE = 8
ABSENT, SOMETIMES, NEVER = "absent", "sometimes", "never"

# name: (options, branch, steps between two synchronisations); also in ddp_parity.cpp.
CASES = {
    "default": ({}, ABSENT, 1),
    "many_buckets": ({"bucket_cap_mb": 0.001}, ABSENT, 1),
    "bucket_view": ({"gradient_as_bucket_view": True}, ABSENT, 1),
    "bucket_view_many_buckets": ({"bucket_cap_mb": 0.001, "gradient_as_bucket_view": True}, ABSENT, 1),
    "no_sync": ({}, ABSENT, 2),
    "no_sync_bucket_view": ({"gradient_as_bucket_view": True}, ABSENT, 3),
    "find_unused": ({"find_unused_parameters": True}, SOMETIMES, 1),
    "find_unused_many_buckets": ({"bucket_cap_mb": 0.001, "find_unused_parameters": True}, SOMETIMES, 1),
    "static_graph": ({"static_graph": True}, ABSENT, 1),
    "static_graph_unused": ({"bucket_cap_mb": 0.001, "static_graph": True}, NEVER, 1),
    "own_buffers": ({"broadcast_buffers": False}, ABSENT, 1),
}


class Net(nn.Module):
    def __init__(self, branch):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.hidden = nn.Linear(4 * 6 * 6, 32)
        self.output = nn.Linear(32, CLASSES)
        if branch != ABSENT:
            self.extra = nn.Linear(32, CLASSES)

    def forward(self, images, with_extra):
        x = torch.relu(self.norm(self.conv(images))).flatten(1)
        x = torch.relu(self.hidden(x))
        y = self.output(x)
        return y + self.extra(x) if with_extra else y


def train(words, rank, initial, data):
    options, branch, accumulate = CASES[words[0]]
    net = Net(branch)
    load_initial(net, initial, rank)
    model = nn.parallel.DistributedDataParallel(net, **options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        images = data[step, rank, :, : SIDE * SIDE].reshape(BATCH, 1, SIDE, SIDE).contiguous()
        labels = data[step, rank, :, SIDE * SIDE].long()
        with_extra = branch == SOMETIMES and (step + rank) % 3 == 0
        synchronise = (step + 1) % accumulate == 0
        with contextlib.nullcontext() if synchronise else model.no_sync():
            F.cross_entropy(model(images, with_extra), labels).backward()
        if synchronise:
            optimizer.step()
            optimizer.zero_grad()
    return net


if __name__ == "__main__":
    parity_program.main(__doc__, __file__, {name: [name] for name in CASES}, train)
