"""Runs the programs of docs/examples/cpp by their names.

usage: examples_test.py TAAS_RUN
"""

import collections
import importlib.util
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import zlib

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(*command, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TAAS_", "TORCHELASTIC_"))}
    done = subprocess.run([TAAS_RUN, *command], cwd=folder, env=environment | {"OMP_NUM_THREADS": "1"},
                          capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()


def collectives(folder):
    for ranks in (1, 4):
        assert run("--nproc-per-node", str(ranks), "collectives_tour", folder=folder) == [
            f"get_rank, get_world_size: rank 0 of {ranks}",
            "barrier: all ranks are here",
            f"send, recv: the sum of all ranks came round as {sum(range(ranks))}",
            "broadcast: every rank has rank 0's 42",
            f"all_reduce: 1 + … + {ranks} = {ranks * (ranks + 1) // 2}",
            f"gather: rank 0 has {[10 * rank for rank in range(ranks)]}",
            "scatter: every rank has the square of its rank",
        ]


def sampler(folder):
    lines = run("--nproc-per-node", "4", "sampler_tour", folder=folder)
    shares = {}
    for line in lines:
        if not line.startswith("  rank "):
            shares[line] = []
        else:
            shares[list(shares)[-1]].append([int(word) for word in line.split(":")[1].split()])
    everything, in_order, even, first, second = shares.values()
    assert everything == [list(range(10))] * 4, lines
    assert in_order == [[0, 4, 8], [1, 5, 9], [2, 6, 0], [3, 7, 1]], lines
    assert even == [[0, 4], [1, 5], [2, 6], [3, 7]], lines
    for epoch in (first, second):
        assert set(sum(epoch, [])) == set(range(10)), lines
    assert first != second, "every epoch has the same order"


def auto_mode(folder):
    (alone,) = run("--nproc-per-node", "1", "auto_mode", folder=folder)
    assert re.fullmatch(r"one process on (cpu|cuda): loss 0\.\d{4}", alone), alone
    (many,) = run("--nproc-per-node", "2", "auto_mode", folder=folder)
    assert re.fullmatch(r"2 processes on (cpu|cuda): loss 0\.\d{4}", many), many


def sizes(folder):
    """On the CPU, the lines of four devices; lines of the replicas of one batch come in any order."""
    lines = run("--nproc-per-node", "1", "data_parallel_sizes", folder=folder)
    if lines[0].startswith("Let's use"):
        return
    def inner(size):
        return f"\tIn Model: input size torch.Size([{size}, 5]) output size torch.Size([{size}, 2])"
    def outer(size):
        return f"Outside: input size torch.Size([{size}, 5]) output_size torch.Size([{size}, 2])"
    batch, rest = [8, 8, 8, 6], [3, 3, 3, 1]
    for parts, size in ((batch, 30), (batch, 30), (batch, 30), (rest, 10)):
        assert collections.Counter(lines[:4]) == collections.Counter(map(inner, parts)), lines
        assert lines[4] == outer(size), lines
        lines = lines[5:]
    assert not lines, lines


def weights_of(path):
    import torch  # here: the other cases need none

    saved = torch.load(path, weights_only=True)
    return saved["epoch"], saved["model"], saved["optimizer"]["state"]


def program_of(name):
    return os.path.join(os.path.dirname(TAAS_RUN), name)


def twins_are_equal(name, data, *more, thirds, folder):
    """In Python, in C++, and in both languages in turn, for three times as long: the same weights and states, to the bit. What C++ saved."""
    import torch

    own, twin = program_of(name), os.path.join(os.path.dirname(TESTS), "docs", "examples", "cpp", name + ".py")
    ways = {"python": [(twin, 3)], "cpp": [(own, 3)], "both": [(twin, 1), (own, 1), (twin, 1)]}
    for ranks in ("1", "2"):
        ends = {}
        for way, parts in ways.items():
            path = os.path.join(folder, f"{way}-{ranks}.pt")
            for program, part in parts:
                run("--nproc-per-node", ranks, program, data, path, str(part * thirds), *more, folder=folder)
            ends[way] = weights_of(path)
        epoch, model, states = ends["python"]
        assert epoch == 3 * thirds
        for way in ("cpp", "both"):
            other_epoch, other_model, other_states = ends[way]
            assert other_epoch == epoch and sorted(other_model) == sorted(model)
            different = [key for key, tensor in model.items() if not torch.equal(tensor, other_model[key])]
            assert not different, f"{ranks} ranks, {way}: {different}"
            for index, state in states.items():
                for key, value in state.items():
                    theirs = torch.as_tensor(other_states[index][key]).double()
                    assert torch.equal(theirs, torch.as_tensor(value).double()), f"{ranks} ranks, {way}: {key} of {index}"
    return ends["cpp"][1]


def gpt(folder):
    import torch

    text, own = os.path.join(folder, "text"), program_of("gpt")
    with open(text, "w", encoding="utf-8") as file:
        file.write("the quick brown fox jumps over the lazy dog. " * 40)
    model = twins_are_equal("gpt", text, thirds=2, folder=folder)
    assert torch.equal(model["head"], model["words.weight"])
    written = run("--nproc-per-node", "1", own, text, os.path.join(folder, "cpp-1.pt"), "60", folder=folder)
    assert written[-1].startswith("step 66, loss ") and float(written[-1].split()[3][:-1]) < 4, written


def write_png(path, width, height, pixels):
    """`pixels`: rows of red, green and blue, one after the other."""
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + pixels[row * 3 * width : (row + 1) * 3 * width] for row in range(height))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                   + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))


def make_images(folder):
    """Of two classes, of which one is redder; of many sizes, and some of them deeper down."""
    numbers = random.Random(1)
    for part, count in (("train", 6), ("val", 3)):
        for label, name in enumerate(("cat", "dog")):
            deeper = os.path.join(folder, part, name, "more")
            os.makedirs(deeper)
            for number in range(count):
                width, height = numbers.randint(36, 60), numbers.randint(36, 60)
                pixels = bytes(numbers.randrange(128) + (100 if at % 3 == label else 0) for at in range(3 * width * height))
                write_png(os.path.join(deeper if number == 0 else os.path.dirname(deeper), f"{number}.png"), width, height, pixels)


def resnet(folder):
    own = program_of("resnet")
    if not os.path.exists(own):
        print("resnet was not built: no stb/stb_image.h (libstb-dev)")
        return
    images = os.path.join(folder, "images")
    make_images(images)
    written = run("--nproc-per-node", "2", own, images, os.path.join(folder, "alone.pt"), "2", "32", folder=folder)
    assert [line.split(":")[0] for line in written] == ["epoch 1", "epoch 2"], written
    served = run("--nproc-per-node", "2", "--cpus", "1", own, images, os.path.join(folder, "served.pt"), "2", "32", folder=folder)
    assert served == written, "data workers make other batches"
    if importlib.util.find_spec("torchvision"):
        twins_are_equal("resnet", images, "32", thirds=1, folder=folder)
    else:
        print("resnet.py was not run: no torchvision")


SCRIPTED_TWIN = """
import sys, torch
import torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
net = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))
net.load_state_dict(torch.jit.load(sys.argv[1]).state_dict())
model = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
for step in range(int(sys.argv[3])):
    torch.manual_seed(step * dist.get_world_size() + dist.get_rank())
    inputs = torch.randn(16, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True)).backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(net.state_dict(), sys.argv[2])
"""


def scripted(folder):
    """A module of TorchScript is trained as the class itself is in Python, to the bit."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))
    script = os.path.join(folder, "module.pt")
    torch.jit.script(net).save(script)
    twin = os.path.join(folder, "twin.py")
    with open(twin, "w", encoding="utf-8") as file:
        file.write(SCRIPTED_TWIN)
    for ranks in ("1", "2"):
        trained, expected = os.path.join(folder, "trained.pt"), os.path.join(folder, "expected.pt")
        run("--nproc-per-node", ranks, program_of("scripted"), script, trained, "60", folder=folder)
        run("--nproc-per-node", ranks, twin, script, expected, "60", folder=folder)
        module, weights = torch.jit.load(trained), torch.load(expected, weights_only=True)
        assert not module.training and list(module.state_dict()) == list(weights)
        different = [name for name, tensor in module.state_dict().items() if not torch.equal(tensor, weights[name])]
        assert not different, f"{ranks} ranks: {different}"
        net.load_state_dict(weights)
        inputs = torch.randn(4, 8)
        assert torch.equal(module(inputs), net.eval()(inputs))


if __name__ == "__main__":
    TAAS_RUN = sys.argv[1]
    for case in (collectives, sampler, auto_mode, sizes, gpt, resnet, scripted):
        with tempfile.TemporaryDirectory() as scratch:
            case(scratch)
