"""Trains models with the communication hooks of Python's DistributedDataParallel, and with uneven inputs in its join, and
with taas' in C++; compares the parameters and buffers of every rank afterwards, bit by bit.

    hook_parity.py CPP_PROGRAM [--ranks 2 4] [--only PART_OF_A_CASE] [--quick]
"""

import argparse
import collections
import contextlib
import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from parity_models import INPUTS, MODELS
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

STEPS, BATCH, RATE = 10, 4, 0.1
SMALL, ONE = 0.004, 25  # MiB: many buckets, or one
DENSE = [name for name in MODELS if name != "sparse"]
HOOKS_OF_ALL = ["allreduce", "builtin_allreduce", "noop"]
SIMPLE = ["builtin_fp16", "fp16", "bf16", "fp16_wrapper", "bf16_wrapper", "own", "stepping"]
STAGED = ["pertensor", "perchannel", "powersgd", "powersgd_cold", "batched_powersgd"]


def all_cases():
    """(hook, model, MiB of a bucket, what gradients are divided by when inputs are uneven, further option)"""
    cases = [(hook, model, SMALL, "even") for hook in HOOKS_OF_ALL for model in MODELS]
    cases += [(hook, model, SMALL, "even") for hook in SIMPLE + STAGED for model in DENSE]
    cases += [(hook, "convolutional", ONE, "even") for hook in STAGED + ["powersgd_qr"]]
    cases += [(hook, model, SMALL, "even") for hook in ("fp16_powersgd", "fp16_perchannel") for model in ("tied", "recurrent")]
    cases += [(hook, model, SMALL, "even") for hook in ("local_sgd", "local_sgd_subgroup") for model in ("convolutional", "tied")]
    cases += [("none", model, bucket, join) for model in MODELS for bucket, join in ((SMALL, "initial"), (ONE, "current"))]
    cases += [(hook, "convolutional", SMALL, "initial") for hook in ("fp16", "perchannel", "powersgd")]
    cases = [(*case, "plain") for case in cases]
    cases += [(hook, "convolutional", SMALL, "even", option) for option in ("view", "static")
              for hook in ("fp16", "fp16_wrapper", "perchannel", "powersgd", "batched_powersgd", "stepping")]
    cases += [("none", "convolutional", SMALL, join, option) for join in ("initial", "current") for option in ("view", "no_sync")]
    cases += [(hook, "recurrent", SMALL, "even", "no_sync") for hook in ("fp16", "powersgd")]
    return cases


def one_model_each(cases):
    """Of the cases that differ in their model alone one, another model each time."""
    by_rest = collections.defaultdict(list)
    for case in cases:
        by_rest[case[0], *case[2:]].append(case)
    return [same[number % len(same)] for number, same in enumerate(by_rest.values())]


def name_of(case):
    hook, model, bucket, join, option = case
    return f"{hook}.{model}.{'many' if bucket == SMALL else 'one'}.{join}.{option}"


def in_turn(hook):
    """One bucket after the other: Python's later stages run where the earlier ones end, so that the collectives of two buckets
    may start in another order on each rank."""

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
    "powersgd_cold": power_sgd(matrix_approximation_rank=2, use_error_feedback=False, warm_start=False,
                               orthogonalization_epsilon=1e-8, batch_tensors_with_same_shape=True),
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


def state_of(module):
    """Parameters, then floating point buffers: what both halves read and write."""
    return [*module.parameters(), *(b for b in module.buffers() if b.is_floating_point())]


def to_bytes(tensors):
    return b"".join(t.detach().float().contiguous().numpy().tobytes() for t in tensors)


def read_floats(path):
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32)


def load_initial(module, values):
    at = 0
    with torch.no_grad():
        for tensor in state_of(module):
            tensor.copy_(values[at : at + tensor.numel()].view_as(tensor))
            at += tensor.numel()


def register_hook(model, name):
    builtin = {"builtin_allreduce": "ALLREDUCE", "builtin_fp16": "FP16_COMPRESS"}
    if name in builtin:
        model._register_builtin_comm_hook(getattr(torch.distributed.BuiltinCommHookType, builtin[name]))
    elif name != "none":
        model.register_comm_hook(*HOOKS[name]())


def train(case, rank, initial, data):
    hook, model_name, bucket, join, option = case
    net = MODELS[model_name]()
    model = nn.parallel.DistributedDataParallel(
        net, bucket_cap_mb=bucket, find_unused_parameters=model_name == "branched", gradient_as_bucket_view=option == "view",
        static_graph=option == "static")
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


def python_rank(folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    mend_batched_power_sgd()
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    initial = read_floats(folder / "initial.bin")
    data = read_floats(folder / "data.bin").view(STEPS, ranks, BATCH, INPUTS + 1)
    for line in (folder / "cases.txt").read_text().splitlines():
        name, hook, model, bucket, join, option = line.split()
        net = train((hook, model, float(bucket), join, option), rank, initial, data)
        (folder / f"python.{name}.{rank}.bin").write_bytes(to_bytes(state_of(net)))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    os._exit(0)  # gloo's threads may outlive Python's end, which aborts a rank that has done all its work


def write_inputs(folder, ranks, cases):
    """`cases` are lines for both halves."""
    torch.manual_seed(ranks)
    (folder / "cases.txt").write_text("".join(f"{case}\n" for case in cases))
    (folder / "initial.bin").write_bytes(to_bytes([torch.randn(20000) * 0.1]))
    pixels = torch.randn(STEPS, ranks, BATCH, INPUTS)
    labels = torch.randint(10, (STEPS, ranks, BATCH, 1)).float()
    (folder / "data.bin").write_bytes(to_bytes([torch.cat([pixels, labels], -1)]))


def run(folder, ranks, command):
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nnodes=1", f"--nproc-per-node={ranks}",
         "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", *command],
        check=True, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
    )


def compare(folder, ranks, cases, name_of=name_of):
    """The cases that differ, with how much of the state does."""
    bad = []
    for name in map(name_of, cases):
        for rank in range(ranks):
            python, cpp = (read_floats(folder / f"{side}.{name}.{rank}.bin") for side in ("python", "cpp"))
            initial = read_floats(folder / "initial.bin")[: python.numel()]
            if torch.equal(python, initial) or not python.isfinite().all():
                bad.append(f"{name}, rank {rank}: the Python half has not trained")
            if python.numel() != cpp.numel():
                bad.append(f"{name}, rank {rank}: {cpp.numel()} values, not {python.numel()}")
            elif different := (python.view(torch.int32) != cpp.view(torch.int32)).sum().item():
                largest = (python - cpp).abs().max().item()
                bad.append(f"{name}, rank {rank}: {different} of {python.numel()} values differ, by {largest:.1e} at most")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true", help="each hook with one model")
    parser.add_argument("--python-rank", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.python_rank:
        return python_rank(arguments.python_rank)
    cases = [case for case in all_cases() if arguments.only in name_of(case)]
    if arguments.quick:
        cases = one_model_each(cases)
    bad = []
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_inputs(folder, ranks, [" ".join(map(str, (name_of(case), *case))) for case in cases])
            run(folder, ranks, [__file__, "--python-rank", str(folder)])
            run(folder, ranks, ["--no-python", arguments.program, str(folder)])
            bad += [f"{ranks} ranks, {line}" for line in compare(folder, ranks, cases)]
            print(f"{ranks} ranks: {len(cases)} cases compared")
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
