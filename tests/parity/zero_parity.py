"""Trains the models of hook_models.py with Python's DistributedDataParallel and the whole optimizer, and in C++ with taas'
ZeroOptimizer, whose state is spread over the ranks; compares the parameters and buffers of every rank, bit by bit.

    zero_parity.py CPP_PROGRAM [--ranks 2 4] [--only PART_OF_A_CASE]
"""

import argparse
import os
import pathlib
import sys
import tempfile

import torch
import torch.nn.functional as F
from hook_models import INPUTS, MODELS
from hook_parity import BATCH, STEPS, compare, load_initial, read_floats, run, state_of, to_bytes, write_inputs
from torch import nn

SMALL = 0.001  # MiB: many buckets


def make_optimizer(name, model_name, parameters):
    """One parameter after the other rounds 16 bit state otherwise: see docs/ddp.md."""
    foreach = True if model_name == "tied" else None
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=0.01, foreach=foreach)
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=foreach)


def all_cases():
    """(stage, optimizer, model)."""
    return [(stage, optimizer, model) for stage in "12" for optimizer in ("sgd", "adamw") for model in MODELS]


def name_of(case):
    return ".".join(case)


def train(optimizer_name, model_name, rank, initial, data):
    net = MODELS[model_name]()
    if model_name == "sparse":
        net.words.sparse = False  # a sharded optimizer takes dense gradients only
    load_initial(net, initial)
    model = nn.parallel.DistributedDataParallel(
        net, bucket_cap_mb=SMALL, find_unused_parameters=model_name == "branched", broadcast_buffers=False)
    optimizer = make_optimizer(optimizer_name, model_name, net.parameters())
    for step in range(STEPS):
        batch = data[step, rank]
        scores = model(batch[:, :INPUTS].contiguous(), (step + rank) % 3 == 0)
        F.cross_entropy(scores.float(), batch[:, INPUTS].long()).backward()
        optimizer.step()
        net.zero_grad()
    return net


def python_rank(folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    initial = read_floats(folder / "initial.bin")
    data = read_floats(folder / "data.bin").view(STEPS, ranks, BATCH, INPUTS + 1)
    trained = {}
    for line in (folder / "cases.txt").read_text().splitlines():
        stage, *whole = line.split()
        if tuple(whole) not in trained:
            trained[tuple(whole)] = to_bytes(state_of(train(*whole, rank, initial, data)))
        (folder / f"python.{line.replace(' ', '.')}.{rank}.bin").write_bytes(trained[tuple(whole)])
    torch.distributed.barrier()
    os._exit(0)  # gloo's threads may outlive Python's end, which aborts a rank that has done all its work


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--only", default="")
    parser.add_argument("--python-rank", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.python_rank:
        return python_rank(arguments.python_rank)
    bad = []
    for ranks in arguments.ranks:
        cases = [case for case in all_cases() if arguments.only in name_of(case)]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_inputs(folder, ranks, [" ".join(case) for case in cases])
            run(folder, ranks, [__file__, "--python-rank", str(folder)])
            run(folder, ranks, ["--no-python", arguments.program, str(folder)])
            bad += [f"{ranks} ranks, {line}" for line in compare(folder, ranks, cases, name_of)]
            print(f"{ranks} ranks: {len(cases)} cases compared")
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
