"""Trains the models of hook_models.py with each option of Python's DistributedDataParallel, and with taas' in C++; compares
the parameters and buffers of every rank afterwards, bit by bit.

    option_parity.py CPP_PROGRAM [--ranks 2 4] [--only PART_OF_A_CASE]

Case "alone" has no wrapper: what one process computes in both languages, before anything is reduced.
"""

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile

import torch
import torch.nn.functional as F
from hook_models import INPUTS, MODELS
from hook_parity import BATCH, RATE, STEPS, compare, load_initial, read_floats, run, state_of, to_bytes, write_inputs
from torch import nn
from mended_precision import mend_mixed_precision
from torch.nn.parallel import distributed

SMALL = 0.001  # MiB: many buckets
ALL = list(MODELS)
DENSE = [name for name in MODELS if name != "sparse"]
PLAIN = ["convolutional", "recurrent", "transformer"]  # one type, no sparse gradients, the same graph in each step
FIXED = [name for name in MODELS if name != "branched"]  # the same graph in each step

PLAIN_SGD = ["sparse", "tied"]  # momenta of 16 bits differ on one rank already: see docs/ddp.md

BF16, HALF, FULL = torch.bfloat16, torch.float16, torch.float32
LOW = ["branched", "recurrent", "transformer", "sparse"]  # neither layers of another type, nor buffers that have to follow
WITH_BUFFERS = ["convolutional", *LOW]


def mixed(*types, **more):
    return {"bucket_cap_mb": SMALL, "mixed_precision": distributed._MixedPrecision(*types), **more}


# option: (arguments of Python's wrapper, models)
OPTIONS = {
    "alone": (None, ALL),
    "default": ({}, ALL),
    "many_buckets": ({"bucket_cap_mb": SMALL}, ALL),
    "cap_list": ({"bucket_cap_mb_list": [0.0005, 0.002, 0.004]}, ALL),
    "bucket_view": ({"bucket_cap_mb": SMALL, "gradient_as_bucket_view": True}, DENSE),
    "find_unused": ({"bucket_cap_mb": SMALL, "find_unused_parameters": True}, ALL),
    "no_sink_clone": ({"bucket_cap_mb": SMALL, "find_unused_parameters": True}, PLAIN),
    "static_graph": ({"bucket_cap_mb": SMALL, "static_graph": True}, ALL),
    "set_static_graph": ({"bucket_cap_mb": SMALL}, FIXED),
    "skip_unused": ({"bucket_cap_mb": SMALL, "find_unused_parameters": True, "skip_all_reduce_unused_params": True}, ALL),
    "batched_copy": ({"bucket_cap_mb": SMALL, "batched_grad_copy": True}, ALL),
    "batched_copy_view": ({"bucket_cap_mb": SMALL, "batched_grad_copy": True, "gradient_as_bucket_view": True}, DENSE),
    "lazy_buckets": ({"bucket_cap_mb": SMALL, "lazy_bucket_allocation": True}, DENSE),
    "no_sync": ({"bucket_cap_mb": SMALL}, ALL),
    "no_sync_view": ({"bucket_cap_mb": SMALL, "gradient_as_bucket_view": True}, DENSE),
    "own_buffers": ({"broadcast_buffers": False}, ["convolutional"]),
    "forward_own_buffers": ({"forward_sync_buffers": False}, ["convolutional"]),
    "buffer_hook_before": ({}, ["convolutional"]),
    "buffer_hook_after": ({}, ["convolutional"]),
    "ignored": ({}, ALL),
    "delayed": ({}, DENSE),
    "manual": ({"bucket_cap_mb": SMALL}, DENSE),
    "other_group": ({"bucket_cap_mb": SMALL}, ALL),
    "no_hooks": ({}, ALL),
    "mixed": (mixed(BF16, BF16), LOW),
    "mixed_default": (mixed(BF16), LOW),
    "mixed_half": (mixed(HALF, HALF), PLAIN[1:]),
    "mixed_full_sum": (mixed(BF16, FULL), LOW),
    "mixed_low_sum": (mixed(FULL, BF16), WITH_BUFFERS),
    "mixed_buffers": (mixed(BF16, BF16, BF16), WITH_BUFFERS),
    "mixed_one_bucket": (mixed(BF16, FULL, BF16, bucket_cap_mb=None), WITH_BUFFERS),
    "mixed_view": (mixed(BF16, BF16, BF16, gradient_as_bucket_view=True), PLAIN),
    "mixed_static": (mixed(BF16, FULL, BF16, static_graph=True), PLAIN),
    "mixed_copy": (mixed(BF16, FULL, BF16, batched_grad_copy=True), PLAIN),
    "mixed_lazy": (mixed(BF16, FULL, BF16, lazy_bucket_allocation=True), PLAIN),
    "mixed_no_sync": (mixed(BF16, FULL, BF16), PLAIN),
    "mixed_frozen": (mixed(BF16, FULL, BF16), PLAIN),
    "mixed_manual": (mixed(BF16, FULL, BF16), PLAIN),
}


def all_cases():
    """(option, model)."""
    return [(option, model) for option, (_, models) in OPTIONS.items() for model in models]


def name_of(case):
    return ".".join(case)


def names_of_last_layer(net):
    """The parameters that are ignored or delayed."""
    return [name for name, _ in net.named_parameters() if name.startswith("output.")]


def average(group, buffers):
    for buffer in buffers.values():
        if buffer.is_floating_point():
            torch.distributed.all_reduce(buffer)
            buffer.div_(torch.distributed.get_world_size())


def own_arguments(option, net):
    if option == "delayed":
        chosen = set(names_of_last_layer(net))
        delayed = [(name, parameter) for name, parameter in net.named_parameters() if name in chosen]
        first = next(iter(net.parameters()))
        return {"delay_all_reduce_named_params": delayed, "param_to_hook_all_reduce": first}
    return {}


def wrap(option, net):
    arguments = {**OPTIONS[option][0], **own_arguments(option, net)}
    if option == "ignored":
        nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, names_of_last_layer(net))
    if option == "mixed_frozen":
        next(net.parameters()).requires_grad_(False)
    model = nn.parallel.DistributedDataParallel(net, **arguments)
    if option.startswith("buffer_hook"):
        where = distributed._BufferCommHookLocation
        model._register_buffer_comm_hook(None, average, where.PRE_FORWARD if option.endswith("before") else where.POST_FORWARD)
    if option == "no_sink_clone":
        model._set_ddp_sink_clone(False)
    if option == "set_static_graph":
        model._set_static_graph()
    if option.endswith("manual"):
        model.require_manual_backward_finalization = True
    return model


def uses_branch(option, step, rank):
    if option in ("find_unused", "no_sink_clone"):
        return (step + rank) % 3 == 0
    return option not in ("skip_unused", "static_graph")


def train(option, model_name, rank, initial, data):
    net = MODELS[model_name]()
    load_initial(net, initial)
    with torch.no_grad():
        for tensor in state_of(net):
            tensor.add_(0 if option == "alone" else 0.25 * rank)  # the wrapper has to replace it
    model = net if option == "alone" else wrap(option, net)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0 if model_name in PLAIN_SGD else 0.9)
    for step in range(STEPS):
        if option == "other_group" and step == 4:
            model._update_process_group(torch.distributed.new_group())
        if option == "no_hooks" and step == 4:
            model._remove_autograd_hooks()
            model = net
        batch = data[step, rank]
        more = uses_branch(option, step, rank)
        accumulate = "no_sync" in option and step % 3 != 2
        with model.no_sync() if accumulate else contextlib.nullcontext():
            scores = model(batch[:, :INPUTS].contiguous(), more)
            F.cross_entropy(scores.float(), batch[:, INPUTS].long()).backward()
        if accumulate:
            continue
        if option.endswith("manual"):
            model.finalize_backward()
        if option == "delayed":
            torch.distributed.barrier()  # Python does not wait for the delayed reduction
        optimizer.step()
        net.zero_grad()
    return net


def python_rank(folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    mend_mixed_precision()
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    initial = read_floats(folder / "initial.bin")
    data = read_floats(folder / "data.bin").view(STEPS, ranks, BATCH, INPUTS + 1)
    for line in (folder / "cases.txt").read_text().splitlines():
        net = train(*line.split(), rank, initial, data)
        (folder / f"python.{line.replace(' ', '.')}.{rank}.bin").write_bytes(to_bytes(state_of(net)))
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
