"""Trains the models of parity_models.py with each option of Python's DistributedDataParallel, and with taas' in C++; compares
the parameters and buffers of every rank afterwards, bit by bit.

    option_parity.py CPP_PROGRAM [--ranks 2 4] [--only PART_OF_A_CASE]

Case "alone" has no wrapper: what one process computes in both languages, before anything is reduced.
"""

import contextlib

import parity_program
import torch
import torch.nn.functional as F
from parity_models import FURTHER, INPUTS, MODELS, NAMES, ROUNDED
from parity_program import STEPS, load_initial
from torch import nn
from torch.nn.parallel import distributed

RATE = 0.1
SMALL = 0.001  # MiB: many buckets
ALL = NAMES
DENSE = [name for name in NAMES if name != "sparse"]
DENSE_FURTHER = [name for name in FURTHER if name != "sparsebags"]
FIXED = [name for name in NAMES if name != "branched"]  # the same graph in each step

WITHOUT_MOMENTUM = ["sparse", "sparsebags"]

# option: (arguments of Python's wrapper, models)
OPTIONS = {
    "alone": (None, ALL + FURTHER),
    "default": ({}, ALL + FURTHER),
    "many_buckets": ({"bucket_cap_mb": SMALL}, ALL),
    "gloo_alone": ({"bucket_cap_mb": SMALL}, ["convolutional", "tied"]),  # without memory that ranks share
    "cap_list": ({"bucket_cap_mb_list": [0.0005, 0.002, 0.004]}, ALL),
    "bucket_view": ({"bucket_cap_mb": SMALL, "gradient_as_bucket_view": True}, DENSE + DENSE_FURTHER),
    "find_unused": ({"bucket_cap_mb": SMALL, "find_unused_parameters": True}, ALL + FURTHER),
    "static_graph": ({"bucket_cap_mb": SMALL, "static_graph": True}, ALL + ["gpt", "recomputed"]),
    "set_static_graph": ({"bucket_cap_mb": SMALL}, FIXED),
    "skip_unused": ({"bucket_cap_mb": SMALL, "find_unused_parameters": True, "skip_all_reduce_unused_params": True}, ALL),
    "batched_copy": ({"bucket_cap_mb": SMALL, "batched_grad_copy": True}, ALL),
    "batched_copy_view": ({"bucket_cap_mb": SMALL, "batched_grad_copy": True, "gradient_as_bucket_view": True}, DENSE),
    "lazy_buckets": ({"bucket_cap_mb": SMALL, "lazy_bucket_allocation": True}, DENSE),
    "no_sync": ({"bucket_cap_mb": SMALL}, ALL + FURTHER),
    "no_sync_view": ({"bucket_cap_mb": SMALL, "gradient_as_bucket_view": True}, DENSE),
    "own_buffers": ({"broadcast_buffers": False}, ["convolutional"]),
    "forward_own_buffers": ({"forward_sync_buffers": False}, ["convolutional"]),
    "buffer_hook": ({}, ["convolutional"]),
    "ignored": ({}, ALL),
    "other_group": ({"bucket_cap_mb": SMALL}, ALL),
    "fewer_ranks": ({"bucket_cap_mb": SMALL}, ALL),
    "no_hooks": ({}, ALL),
    "two_wrappers": ({"bucket_cap_mb": SMALL}, ["adversaries"]),
}


def all_cases():
    return {f"{option}.{model}": (option, model) for option, (_, models) in OPTIONS.items() for model in models}


def names_of_last_layer(net):
    """The parameters that are ignored."""
    return [name for name, _ in net.named_parameters() if name.startswith("output.")]


def average(group, buffers):
    for buffer in buffers.values():
        if buffer.is_floating_point():
            torch.distributed.all_reduce(buffer)
            buffer.div_(torch.distributed.get_world_size())


def wrap(option, net):
    if option == "ignored":
        nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, names_of_last_layer(net))
    model = nn.parallel.DistributedDataParallel(net, **OPTIONS[option][0])
    if option == "buffer_hook":
        model._register_buffer_comm_hook(None, average, distributed._BufferCommHookLocation.POST_FORWARD)
    if option == "set_static_graph":
        model._set_static_graph()
    return model


def uses_branch(option, step, rank):
    if option == "find_unused":
        return (step + rank) % 3 == 0
    return option not in ("skip_unused", "static_graph")


def train_adversaries(net, rank, data):
    """As a GAN is trained: what the discriminator says of the generator's work trains first the one, then the other."""
    generator, discriminator = wrap("two_wrappers", net.generator), wrap("two_wrappers", net.discriminator)
    optimizers = [torch.optim.Adam(part.parameters(), lr=2e-3, betas=(0.5, 0.999)) for part in (net.generator, net.discriminator)]
    loss = F.binary_cross_entropy_with_logits
    for step in range(STEPS):
        batch = data[step, rank]
        real, noise = batch[:, :INPUTS].contiguous(), batch[:, : net.NOISE].contiguous()
        fake = generator(noise)
        seen = discriminator(real)
        doubted = discriminator(fake.detach())
        (loss(seen, torch.ones_like(seen)) + loss(doubted, torch.zeros_like(doubted))).backward()
        optimizers[1].step()
        net.zero_grad()
        believed = discriminator(fake)
        loss(believed, torch.ones_like(believed)).backward()
        optimizers[0].step()
        net.zero_grad()
    return net


def train(words, rank, initial, data):
    option, model_name = words
    net = MODELS[model_name]()
    if option == "two_wrappers":
        load_initial(net, initial, 0.25 * rank)
        return train_adversaries(net, rank, data)
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
        optimizer.step()
        net.zero_grad()
    return net


if __name__ == "__main__":
    parity_program.main(__doc__, __file__, all_cases(), train, rounded=ROUNDED)
