"""Trains models with communication hooks and with uneven inputs, in Python and in C++.

Python's DistributedDataParallel has the hooks and the join, and taas' has them in C++; the parameters and buffers of
every rank are compared afterwards, bit by bit.

    hook_parity.py CPP_PROGRAM [--ranks 2 4] [--only PART_OF_A_CASE] [--quick: each hook with one model]
"""

import collections
import contextlib
import functools

import parity_program
import torch
import torch.nn.functional as F
from parity_models import INPUTS, MODELS, NAMES, ROUNDED
from parity_program import STEPS, load_initial
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import (
    debugging_hooks,
    default_hooks,
    optimizer_overlap_hooks,
    post_localSGD_hook,
    powerSGD_hook,
    quantization_hooks,
)
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer

RATE = 0.1
SMALL, ONE = 0.004, 25  # MiB: many buckets, or one
DENSE = [name for name in NAMES if name != "sparse"]
HOOKS_OF_ALL = ["allreduce", "builtin_allreduce", "noop"]
SIMPLE = ["builtin_fp16", "fp16", "bf16", "fp16_wrapper", "bf16_wrapper", "own", "stepping"]
STAGED = ["pertensor", "perchannel", "powersgd", "powersgd_cold", "batched_powersgd"]


def all_cases():
    """(hook, model, MiB of a bucket, what gradients are divided by when inputs are uneven, further option)"""
    cases = [(hook, model, SMALL, "even") for hook in HOOKS_OF_ALL for model in NAMES]
    cases += [(hook, model, SMALL, "even") for hook in SIMPLE + STAGED for model in DENSE]
    cases += [(hook, "convolutional", ONE, "even") for hook in STAGED + ["powersgd_qr"]]
    cases += [
        (hook, model, SMALL, "even") for hook in ("fp16_powersgd", "fp16_perchannel") for model in ("tied", "recurrent")
    ]
    cases += [
        (hook, model, SMALL, "even")
        for hook in ("local_sgd", "local_sgd_subgroup")
        for model in ("convolutional", "tied")
    ]
    cases += [
        ("none", model, bucket, join) for model in NAMES for bucket, join in ((SMALL, "initial"), (ONE, "current"))
    ]
    cases += [(hook, "convolutional", SMALL, "initial") for hook in ("fp16", "perchannel", "powersgd")]
    cases += [
        ("powersgd", "encoder", ONE, "even"),
        ("bf16", "doubled", ONE, "even"),
        ("none", "sparsebags", SMALL, "initial"),
    ]
    cases = [(*case, "plain") for case in cases]
    cases += [
        (hook, "convolutional", SMALL, "even", option)
        for option in ("view", "static")
        for hook in ("fp16", "fp16_wrapper", "perchannel", "powersgd", "batched_powersgd", "stepping")
    ]
    cases += [
        ("none", "convolutional", SMALL, join, option)
        for join in ("initial", "current")
        for option in ("view", "no_sync")
    ]
    cases += [(hook, "recurrent", SMALL, "even", "no_sync") for hook in ("fp16", "powersgd")]
    return cases


def one_model_each(cases):
    """Of the cases that differ in their model alone one, another model each time."""
    by_rest = collections.defaultdict(list)
    for case in cases:
        by_rest[(case[0], *case[2:])].append(case)
    return [same[number % len(same)] for number, same in enumerate(by_rest.values())]


def name_of(case):
    hook, model, bucket, join, option = case
    return f"{hook}.{model}.{'many' if bucket == SMALL else 'one'}.{join}.{option}"


def in_turn(hook):
    """One bucket after the other: Python's later stages run where the earlier ones end.

    So the collectives of two buckets may start in another order on each rank.
    """

    def run(state, bucket):
        future = hook(state, bucket)
        future.wait()
        return future

    return run


def power_sgd(hook=powerSGD_hook.powerSGD_hook, **options):
    return lambda: (powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, **options), in_turn(hook))


def local_sgd(in_subgroup):
    group = torch.distributed.group.WORLD
    return post_localSGD_hook.PostLocalSGDState(group, group, 4, in_subgroup), post_localSGD_hook.post_localSGD_hook


def own(_, bucket):
    signs = bucket.buffer().sign()
    torch.distributed.all_reduce(signs)
    future = torch.futures.Future()
    future.set_result(signs.div_(100.0))
    return future


class SGD:
    def step_param(self, parameter, gradient):
        with torch.no_grad():
            parameter.add_(gradient, alpha=-RATE)


def stepping():
    state = optimizer_overlap_hooks._OptimizerHookState(SGD())
    return None, optimizer_overlap_hooks._hook_then_optimizer(default_hooks.allreduce_hook, state)


fp16 = default_hooks.fp16_compress_wrapper
HOOKS = {
    "allreduce": lambda: (None, default_hooks.allreduce_hook),
    "fp16": lambda: (None, default_hooks.fp16_compress_hook),
    "bf16": lambda: (None, default_hooks.bf16_compress_hook),
    "fp16_wrapper": lambda: (None, fp16(default_hooks.allreduce_hook)),
    "bf16_wrapper": lambda: (None, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)),
    "pertensor": lambda: (None, in_turn(quantization_hooks.quantization_pertensor_hook)),
    "perchannel": lambda: (None, in_turn(quantization_hooks.quantization_perchannel_hook)),
    "fp16_perchannel": lambda: (None, in_turn(fp16(quantization_hooks.quantization_perchannel_hook))),
    "noop": lambda: (None, debugging_hooks.noop_hook),
    "powersgd": power_sgd(orthogonalization_epsilon=1e-8),
    "powersgd_qr": power_sgd(matrix_approximation_rank=4, min_compression_rate=1, random_seed=7),
    "powersgd_cold": power_sgd(
        matrix_approximation_rank=2,
        use_error_feedback=False,
        warm_start=False,
        orthogonalization_epsilon=1e-8,
        batch_tensors_with_same_shape=True,
    ),
    "fp16_powersgd": power_sgd(fp16(powerSGD_hook.powerSGD_hook), orthogonalization_epsilon=1e-6),
    "batched_powersgd": power_sgd(powerSGD_hook.batched_powerSGD_hook, matrix_approximation_rank=2),
    "local_sgd": lambda: local_sgd(False),
    "local_sgd_subgroup": lambda: local_sgd(True),
    "own": lambda: (None, own),
    "stepping": stepping,
}


def mend_batched_power_sgd():
    """torch 2.15's hook gives _orthogonalize a matrix, which asserts that it is given a batch."""
    of_batch = powerSGD_hook._orthogonalize

    @functools.wraps(of_batch)
    def of_matrix_too(matrices, epsilon=0):
        of_batch(matrices if matrices.dim() == 3 else matrices.unsqueeze(0), epsilon)

    powerSGD_hook._orthogonalize = of_matrix_too


def register_hook(model, name):
    builtin = {"builtin_allreduce": "ALLREDUCE", "builtin_fp16": "FP16_COMPRESS"}
    if name in builtin:
        model._register_builtin_comm_hook(getattr(torch.distributed.BuiltinCommHookType, builtin[name]))
    elif name != "none":
        model.register_comm_hook(*HOOKS[name]())


def train(words, rank, initial, data):
    hook, model_name, bucket, join, option = words
    net = MODELS[model_name]()
    model = nn.parallel.DistributedDataParallel(
        net,
        bucket_cap_mb=float(bucket),
        find_unused_parameters=model_name == "branched",
        gradient_as_bucket_view=option == "view",
        static_graph=option == "static",
    )
    load_initial(net, initial)
    register_hook(model, hook)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    if hook.startswith("local_sgd"):
        optimizer = PostLocalSGDOptimizer(optimizer, PeriodicModelAverager(3, 4))

    def iterate(steps):
        for step in range(steps):
            batch = data[step, rank]
            alone = option == "no_sync" and step % 2 == 0
            with model.no_sync() if alone else contextlib.nullcontext():
                scores = model(batch[:, :INPUTS].contiguous(), (step + rank) % 3 == 0)
                F.cross_entropy(scores, batch[:, INPUTS].long()).backward()
            if alone:
                continue
            if hook != "stepping":
                optimizer.step()
            net.zero_grad()

    if join == "even":
        iterate(STEPS)
    else:
        with model.join(divide_by_initial_world_size=join == "initial"):
            iterate(STEPS - 2 * rank)
    return net


def by_name(cases):
    return {name_of(case): case for case in cases}


if __name__ == "__main__":
    mend_batched_power_sgd()
    parity_program.main(__doc__, __file__, by_name(all_cases()), train, by_name(one_model_each(all_cases())), ROUNDED)
