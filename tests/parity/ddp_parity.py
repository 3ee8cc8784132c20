"""Trains models with each option of DistributedDataParallel, with Python's and with taas' in C++.

The parameters and buffers that every rank has after ten steps are compared: on the CPU bit by bit, on GPUs, whose
kernels add in no certain order, to a thousandth of the largest number.

    ddp_parity.py CPP_PROGRAM [--ranks 2 3 4] [--quick] [--only PART_OF_A_CASE ...] [--device cuda] [--launch "WORDS"]
"""

import argparse
import contextlib
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from parity_models import CLASSES, INPUTS, MODELS, Gan
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from free_port import free_port

STEPS, BATCH = 10, 4
RATE, MOMENTUM = 0.1, 0.9
GROWTH_INTERVAL = 3  # of the gradient scaler, in steps
NEAR = 1e-3  # on a GPU, of the largest number
WRONG = 0.25  # times the rank is added to what it begins with: the wrapper has to mend it
SMALL = {"bucket_cap_mb": 0.001}  # many buckets
VIEW = {"gradient_as_bucket_view": True}
STATIC = {"static_graph": True}
UNUSED = {"find_unused_parameters": True}
COPY = {"batched_grad_copy": True}

EVERY = list(MODELS)
DENSE = [name for name in EVERY if name != "sparse"]
HOOKED = ["convolutional", "recurrent", "tied"]
WITHOUT_MOMENTUM = ["sparse", "tied"]  # ddp_parity.cpp says why

# option: (arguments of Python's wrapper, models). What else an option does is in train(), by its name.
OPTIONS = {
    "default": ({}, EVERY),
    "many_buckets": (SMALL, EVERY),
    "gloo_alone": (SMALL, ["convolutional", "tied"]),  # without memory that ranks share
    "cap_list": ({"bucket_cap_mb_list": [0.0005, 0.002, 0.004]}, EVERY),
    "bucket_view": (SMALL | VIEW, DENSE),
    "bucket_view_one_bucket": (VIEW, ["convolutional"]),
    "find_unused": (SMALL | UNUSED, EVERY),
    "find_unused_one_bucket": (UNUSED, ["branched"]),
    "static_graph": (SMALL | STATIC, EVERY),
    "static_graph_one_bucket": (STATIC, ["convolutional", "branched"]),
    "skip_unused": (SMALL | UNUSED | {"skip_all_reduce_unused_params": True}, EVERY),
    "batched_copy": (SMALL | COPY, EVERY),
    "batched_copy_view": (SMALL | COPY | VIEW, DENSE),
    "lazy_buckets": (SMALL | {"lazy_bucket_allocation": True}, DENSE),
    "no_sync": (SMALL, EVERY),
    "no_sync_view": (SMALL | VIEW, DENSE),
    "no_sync_view_one_bucket": (VIEW, ["convolutional"]),
    "own_buffers": ({"broadcast_buffers": False}, ["convolutional"]),
    "forward_own_buffers": ({"forward_sync_buffers": False}, ["convolutional"]),
    "no_init_sync": ({"init_sync": False}, ["convolutional", "recurrent"]),
    "fp16": (SMALL, HOOKED),
    "fp16_view": (SMALL | VIEW, ["convolutional"]),
    "fp16_static": (SMALL | STATIC, ["convolutional"]),
    "fp16_no_sync": (SMALL, ["recurrent"]),
    "bf16": (SMALL, HOOKED),
    "own_hook": (SMALL, HOOKED),
    "amp": (SMALL, [name for name in DENSE if name != "sync_cnn"]),
    "zero": (SMALL | UNUSED, ["mlp", "convolutional", "branched", "recurrent"]),
    "sub_groups": (SMALL, ["mlp", "convolutional"]),
    "gan": (SMALL, ["gan"]),
}


def as_words(name, value):
    """As ddp_parity.cpp reads an argument: a list begins with its length, and True is 1."""
    values = [len(value), *value] if isinstance(value, list) else [value]
    return [name, *(f"{each:g}" for each in values)]


# What NCCL or torch's own half cannot do: gradients that are sparse, memory that only ranks on the CPU share.
NOT_ON_GPUS = ("sparse", "gloo_alone")


def all_cases(quick):
    """The line of each case by its name; `quick`: each option but the default one with one of its models."""
    cases = {}
    for number, (option, (arguments, models)) in enumerate(OPTIONS.items()):
        one = quick and option != "default"
        for model in [models[number % len(models)]] if one else models:
            words = [word for argument in arguments.items() for word in as_words(*argument)]
            name = f"{option}.{model}"
            cases[name] = " ".join([name, option, model, *words])
    return cases


def state_of(module):
    """Parameters, then floating point buffers: what both halves read and write."""
    return [*module.parameters(), *(b for b in module.buffers() if b.is_floating_point())]


def to_bytes(tensors):
    return b"".join(tensor.detach().cpu().float().contiguous().numpy().tobytes() for tensor in tensors)


def read_floats(path):
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32)


def load_initial(module, values, wrong=0):
    """`wrong` is added: for a rank whose values the wrapper has to replace."""
    at = 0
    with torch.no_grad():
        for tensor in state_of(module):
            tensor.copy_(values[at : at + tensor.numel()].view_as(tensor)).add_(wrong)
            at += tensor.numel()


def own_hook(_, bucket):
    signs = bucket.buffer().sign()
    torch.distributed.all_reduce(signs)
    future = torch.futures.Future()
    future.set_result(signs.div_(100.0))
    return future


HOOKS = {"fp16": default_hooks.fp16_compress_hook, "bf16": default_hooks.bf16_compress_hook, "own_hook": own_hook}


def wrap(option, net, group=None):
    model = DistributedDataParallel(net, process_group=group, **OPTIONS[option][0])
    for name, hook in HOOKS.items():
        if option.startswith(name):
            model.register_comm_hook(None, hook)
    return model


def make_sgd(net, momentum=MOMENTUM):
    return torch.optim.SGD(net.parameters(), lr=RATE, momentum=momentum, foreach=False)


def group_of_pair(rank):
    """Ranks 0 and 1, ranks 2 and 3, or who is left of them."""
    ranks = torch.distributed.get_world_size()
    pairs = [list(range(first, min(first + 2, ranks))) for first in range(0, ranks, 2)]
    return [torch.distributed.new_group(pair) for pair in pairs][rank // 2]


def uses_branch(option, step, rank):
    if option.startswith("find_unused") or option == "zero":
        return (step + rank) % 3 == 0
    return option != "skip_unused" and not option.startswith("static_graph")


def train_gan(rank, initial, data):
    """The discriminator learns from numbers of the data and from made ones, then the generator through it."""
    gan = Gan()
    load_initial(gan, initial, WRONG * rank)
    gan.to(data.device)
    generator, discriminator = wrap("gan", gan.generator), wrap("gan", gan.discriminator)
    generator_sgd, discriminator_sgd = make_sgd(generator), make_sgd(discriminator)

    def loss(numbers, truth):
        scores = discriminator(numbers)
        return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, truth))

    for step in range(STEPS):
        real = data[step, rank, :, :INPUTS].contiguous()
        noise = data[(step + 1) % STEPS, rank, :, : Gan.NOISE].contiguous()
        fake = generator(noise)
        discriminator.zero_grad()
        loss(real, 1).backward()
        loss(fake.detach(), 0).backward()
        discriminator_sgd.step()
        generator.zero_grad()
        loss(fake, 1).backward()
        generator_sgd.step()
    return gan


def train(words, rank, initial, data):
    option, model_name, *_ = words
    if option == "gan":
        return train_gan(rank, initial, data)
    group = None
    if option == "sub_groups":
        group = group_of_pair(rank)
        model_name = "recurrent" if rank >= 2 else model_name
    net = MODELS[model_name]()
    if model_name == "sync_cnn" and data.is_cuda:
        net.norm = nn.SyncBatchNorm(net.norm.num_features)
    load_initial(net, initial, WRONG * rank)
    net.to(data.device)
    model = wrap(option, net, group)
    optimizer = make_sgd(net, 0 if model_name in WITHOUT_MOMENTUM else MOMENTUM)
    mixed = option == "amp"
    scaler = torch.amp.GradScaler(data.device.type, growth_interval=GROWTH_INTERVAL, enabled=mixed)
    for step in range(STEPS):
        batch = data[step, rank]
        accumulates = "no_sync" in option and step % 3 != 2
        with model.no_sync() if accumulates else contextlib.nullcontext():
            with torch.autocast(data.device.type, enabled=mixed):
                scores = model(batch[:, :INPUTS].contiguous(), uses_branch(option, step, rank))
                loss = F.cross_entropy(scores.float(), batch[:, INPUTS].long())
            scaler.scale(loss).backward()
        if not accumulates:
            scaler.step(optimizer)
            scaler.update()
            net.zero_grad()
    return net


def write_inputs(folder, ranks, lines):
    """`lines`: one of each case, for both halves; the first word is its name."""
    torch.manual_seed(ranks)
    (folder / "cases.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "initial.bin").write_bytes(to_bytes([torch.randn(20000) * 0.1]))
    pixels = torch.randn(STEPS, ranks, BATCH, INPUTS)
    labels = torch.randint(CLASSES, (STEPS, ranks, BATCH, 1)).float()
    (folder / "data.bin").write_bytes(to_bytes([torch.cat([pixels, labels], -1)]))


def python_rank(folder, device):
    torch.set_num_threads(1)
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    initial = read_floats(folder / "initial.bin")
    data = read_floats(folder / "data.bin").view(STEPS, ranks, BATCH, INPUTS + 1).to(device)
    for line in (folder / "cases.txt").read_text().splitlines():
        name, *words = line.split()
        net = train(words, rank, initial, data)
        (folder / f"python.{name}.{rank}.bin").write_bytes(to_bytes(state_of(net)))
    torch.distributed.barrier()
    os._exit(0)  # gloo's threads may outlive Python's end, which aborts a rank that has done all its work


def run_ranks(ranks, command, launch, folder, on_gpu):
    """With the words of a launcher in front; or without one, and so without the seconds that torchrun needs to start,
    with the environment that it gives."""
    if launch:
        environment = os.environ if on_gpu else {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run([*shlex.split(launch), "--no-python", "--", *command], cwd=folder, env=environment)
        if done.returncode:
            sys.exit(f"{launch} {' '.join(map(str, command))} exited with {done.returncode}")
        return
    shared = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
    }
    processes = [
        subprocess.Popen(command, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(ranks)
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        sys.exit(f"the ranks of {' '.join(map(str, command))} exited with {codes}")


def difference(python, cpp, on_gpu):
    """In words; empty: none."""
    largest = (python - cpp).abs().max().item()
    if on_gpu:
        bound = NEAR * python.abs().max().item()
        return f"differs by {largest:.1e}, more than {bound:.1e}" if not largest <= bound else ""
    different = (python.view(torch.int32) != cpp.view(torch.int32)).sum().item()
    return f"{different} of {python.numel()} values differ, by {largest:.1e} at most" if different else ""


def compare(folder, ranks, names, on_gpu):
    """The cases that differ, with how much of the state does."""
    bad = []
    for name in names:
        for rank in range(ranks):
            python, cpp = (read_floats(folder / f"{side}.{name}.{rank}.bin") for side in ("python", "cpp"))
            initial = read_floats(folder / "initial.bin")[: python.numel()]
            if torch.equal(python, initial) or not python.isfinite().all():
                bad.append(f"{name}, rank {rank}: the Python half has not trained")
            if python.numel() != cpp.numel():
                bad.append(f"{name}, rank {rank}: {cpp.numel()} values, not {python.numel()}")
            elif different := difference(python, cpp, on_gpu):
                bad.append(f"{name}, rank {rank}: {different}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--only", nargs="+", default=[""], metavar="PART_OF_A_CASE")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--launch", metavar="WORDS", help="a launcher and its options for so many ranks")
    parser.add_argument("--quick", action="store_true", help="each model and each option once")
    parser.add_argument("--python-rank", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.python_rank:
        return python_rank(arguments.python_rank, arguments.device)
    on_gpu = arguments.device == "cuda"
    left_out = NOT_ON_GPUS if on_gpu else ()
    lines = {
        name: line
        for name, line in all_cases(arguments.quick).items()
        if any(part in name for part in arguments.only) and not any(part in name for part in left_out)
    }
    bad = []
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_inputs(folder, ranks, lines.values())
            python = [sys.executable, os.path.abspath(__file__), "--python-rank", folder, "--device", arguments.device]
            run_ranks(ranks, python, arguments.launch, folder, on_gpu)
            cpp = [os.path.abspath(arguments.program), folder, *(["cuda"] if on_gpu else [])]
            run_ranks(ranks, cpp, arguments.launch, folder, on_gpu)
            bad += [f"{ranks} ranks, {line}" for line in compare(folder, ranks, lines, on_gpu)]
            print(f"{ranks} ranks: {len(lines)} cases compared")
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
