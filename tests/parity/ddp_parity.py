"""Trains the same model on the same data with Python's DistributedDataParallel under torchrun and with taas' in C++, and
compares the parameters and buffers of every rank after ten steps, bit by bit, for each option.

    ddp_parity.py CPP_PROGRAM [--ranks 2 4] [--launcher "taas-run --gpus {ranks}"]
"""

import argparse
import contextlib
import os
import pathlib
import shlex
import socket
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

STEPS, BATCH, SIDE, CLASSES = 10, 4, 8, 10
ABSENT, SOMETIMES, NEVER = "absent", "sometimes", "never"

# name: (options, branch, steps between two synchronisations); the list of ddp_parity.cpp, in its order.
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


def state_of(module):
    """Parameters, then floating point buffers: what both halves read and write."""
    return [*module.parameters(), *(b for b in module.buffers() if b.is_floating_point())]


def to_bytes(tensors):
    return b"".join(t.detach().contiguous().numpy().tobytes() for t in tensors)


def read_floats(path):
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32)


def load_initial(module, values, rank):
    """Rank 0 gets the given values, the others wrong ones that the wrapper has to replace."""
    at = 0
    with torch.no_grad():
        for tensor in state_of(module):
            tensor.copy_(values[at : at + tensor.numel()].view_as(tensor)).add_(rank)
            at += tensor.numel()


def train(name, rank, data, folder):
    options, branch, accumulate = CASES[name]
    net = Net(branch)
    load_initial(net, read_floats(folder / "initial.bin"), rank)
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
    (folder / f"python.{name}.{rank}.bin").write_bytes(to_bytes(state_of(net)))


def python_rank(folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    data = read_floats(folder / "data.bin").view(STEPS, ranks, BATCH, SIDE * SIDE + 1)
    for name in CASES:
        train(name, rank, data, folder)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    os._exit(0)  # gloo's threads may outlive Python's end, which aborts a rank that has done all its work


def write_inputs(folder, ranks):
    torch.manual_seed(ranks)
    (folder / "initial.bin").write_bytes(to_bytes(state_of(Net(ABSENT))) + to_bytes([torch.randn(1000)]))
    pixels = torch.randn(STEPS, ranks, BATCH, SIDE * SIDE)
    labels = torch.randint(CLASSES, (STEPS, ranks, BATCH, 1)).float()
    (folder / "data.bin").write_bytes(to_bytes([torch.cat([pixels, labels], -1)]))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_python(folder, ranks):
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nnodes=1", f"--nproc-per-node={ranks}",
         "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", __file__, "--python-rank", str(folder)],
        check=True, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
    )


def run_cpp(folder, ranks, program, launcher):
    shared = {**os.environ, "OMP_NUM_THREADS": "1"}
    if launcher:
        command = [*shlex.split(launcher.format(ranks=ranks)), program, str(folder)]
        subprocess.run(command, check=True, env=shared)
        return
    shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks),
               "LOCAL_WORLD_SIZE": str(ranks)}
    processes = [
        subprocess.Popen([program, str(folder)], env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(ranks)
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        sys.exit(f"the C++ ranks exited with {codes}")


def compare(folder, ranks):
    """The cases that differ, with how much of the state does."""
    bad = []
    for name, (_, branch, _) in CASES.items():
        for rank in range(ranks):
            python, cpp = (read_floats(folder / f"{side}.{name}.{rank}.bin") for side in ("python", "cpp"))
            initial = read_floats(folder / "initial.bin")[: python.numel()]
            assert python.numel() == sum(t.numel() for t in state_of(Net(branch))), "the Python half wrote too little"
            if torch.equal(python, initial) or not python.isfinite().all():
                bad.append(f"{name}, rank {rank}: the Python half has not trained")
            if python.numel() != cpp.numel() or not torch.equal(python.view(torch.int32), cpp.view(torch.int32)):
                different = (python.view(torch.int32) != cpp.view(torch.int32)).sum().item() if python.numel() == cpp.numel() else "size"
                bad.append(f"{name}, rank {rank}: {different} of {python.numel()} values differ")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--launcher", default="")
    parser.add_argument("--python-rank", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.python_rank:
        return python_rank(arguments.python_rank)
    bad = []
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_inputs(folder, ranks)
            run_python(folder, ranks)
            run_cpp(folder, ranks, arguments.program, arguments.launcher)
            bad += [f"{ranks} ranks, {line}" for line in compare(folder, ranks)]
            print(f"{ranks} ranks: {len(CASES)} cases compared")
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
