"""Trains the models of parity_models.py with each option of DistributedDataParallel, in Python and in C++.

The parameters and buffers of every rank with Python's and with taas' are compared afterwards, bit by bit.

    option_parity.py CPP_PROGRAM [--ranks 2 4] [--only PART_OF_A_CASE]

Case "alone" has no wrapper: what one process computes in both languages, before anything is reduced.
"""

import contextlib

import parity_program
import torch
import torch.nn.functional as F
from mended_precision import mend_mixed_precision
from parity_models import FURTHER, INPUTS, MODELS, NAMES, ROUNDED
from parity_program import STEPS, load_initial
from torch import nn
from torch.nn.parallel import distributed

RATE = 0.1
SMALL = 0.001  # MiB: many buckets
ALL = NAMES
DENSE = [name for name in NAMES if name != "sparse"]
DENSE_FURTHER = [name for name in FURTHER if name != "sparsebags"]
PLAIN = ["convolutional", "recurrent", "transformer"]  # one type, no sparse gradients, the same graph in each step
FIXED = [name for name in NAMES if name != "branched"]  # the same graph in each step

WITHOUT_MOMENTUM = ["sparse", "sparsebags"]

BF16, HALF, FULL = torch.bfloat16, torch.float16, torch.float32
LOW = [
    "branched",
    "recurrent",
    "transformer",
    "sparse",
]  # neither layers of another type, nor buffers that have to follow
WITH_BUFFERS = ["convolutional", *LOW]


def mixed(*types, **more):
    return {"bucket_cap_mb": SMALL, "mixed_precision": distributed._MixedPrecision(*types), **more}


# option: (arguments of Python's wrapper, models)
OPTIONS = {
    "alone": (None, ALL + FURTHER),
    "default": ({}, ALL + FURTHER),
    "many_buckets": ({"bucket_cap_mb": SMALL}, ALL),
    "gloo_alone": ({"bucket_cap_mb": SMALL}, ["convolutional", "tied"]),  # without memory that ranks share
    "cap_list": ({"bucket_cap_mb_list": [0.0005, 0.002, 0.004]}, ALL),
    "bucket_view": ({"bucket_cap_mb": SMALL, "gradient_as_bucket_view": True}, DENSE + DENSE_FURTHER),
    "find_unused": ({"bucket_cap_mb": SMALL, "find_unused_parameters": True}, ALL + FURTHER),
    "no_sink_clone": ({"bucket_cap_mb": SMALL, "find_unused_parameters": True}, PLAIN),
    "static_graph": ({"bucket_cap_mb": SMALL, "static_graph": True}, ALL),
    "set_static_graph": ({"bucket_cap_mb": SMALL}, FIXED),
    "skip_unused": (
        {"bucket_cap_mb": SMALL, "find_unused_parameters": True, "skip_all_reduce_unused_params": True},
        ALL,
    ),
    "batched_copy": ({"bucket_cap_mb": SMALL, "batched_grad_copy": True}, ALL),
    "batched_copy_view": ({"bucket_cap_mb": SMALL, "batched_grad_copy": True, "gradient_as_bucket_view": True}, DENSE),
    "lazy_buckets": ({"bucket_cap_mb": SMALL, "lazy_bucket_allocation": True}, DENSE),
    "no_sync": ({"bucket_cap_mb": SMALL}, ALL + FURTHER),
    "no_sync_view": ({"bucket_cap_mb": SMALL, "gradient_as_bucket_view": True}, DENSE),
    "own_buffers": ({"broadcast_buffers": False}, ["convolutional"]),
    "forward_own_buffers": ({"forward_sync_buffers": False}, ["convolutional"]),
    "buffer_hook_before": ({}, ["convolutional"]),
    "buffer_hook_after": ({}, ["convolutional"]),
    "ignored": ({}, ALL),
    "delayed": ({}, DENSE),
    "manual": ({"bucket_cap_mb": SMALL}, DENSE),
    "other_group": ({"bucket_cap_mb": SMALL}, ALL),
    "fewer_ranks": ({"bucket_cap_mb": SMALL}, ALL),
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
    return {f"{option}.{model}": (option, model) for option, (_, models) in OPTIONS.items() for model in models}


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
        model._register_buffer_comm_hook(
            None, average, where.PRE_FORWARD if option.endswith("before") else where.POST_FORWARD
        )
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


def train(words, rank, initial, data):
    option, model_name = words
    net = MODELS[model_name]()
    load_initial(net, initial, 0 if option == "alone" else 0.25 * rank)
    model = net if option == "alone" else wrap(option, net)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0 if model_name in WITHOUT_MOMENTUM else 0.9)
    for step in range(STEPS):
        if option == "other_group" and step == 4:
            model._update_process_group(torch.distributed.new_group())
        if option == "fewer_ranks" and step == 4:
            members = range(max(2, torch.distributed.get_world_size() // 2))
            group = torch.distributed.new_group(members)
            if rank not in members:
                break
            model._update_process_group(group)
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


if __name__ == "__main__":
    mend_mixed_precision()
    parity_program.main(__doc__, __file__, all_cases(), train, rounded=ROUNDED)
