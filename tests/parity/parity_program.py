"""What the scripts of this folder share: each trains cases in Python and in C++ and compares what the ranks have."""

import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from free_port import free_port

STEPS, BATCH, INPUTS, CLASSES = 10, 4, 64, 10


def state_of(module):
    """Parameters, then floating point buffers: what both halves read and write."""
    return [*module.parameters(), *(b for b in module.buffers() if b.is_floating_point())]


def to_bytes(tensors):
    """Of float32; a number of 64 bits is its float32 and the float32 of the rest."""
    parts = []
    for tensor in tensors:
        values = tensor.detach().float()
        parts += [values] if tensor.dtype != torch.float64 else [values, (tensor.detach() - values).float()]
    return b"".join(part.contiguous().numpy().tobytes() for part in parts)


def read_floats(path):
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32)


def load_initial(module, values, wrong=0):
    """`wrong` is added: for a rank whose values the wrapper has to replace."""
    at = 0
    with torch.no_grad():
        for tensor in state_of(module):
            tensor.copy_(values[at : at + tensor.numel()].view_as(tensor)).add_(wrong)
            at += tensor.numel()


def write_inputs(folder, ranks, lines):
    """`lines`: one of each case, for both halves; the first word is its name."""
    torch.manual_seed(ranks)
    (folder / "cases.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "initial.bin").write_bytes(to_bytes([torch.randn(20000) * 0.1]))
    pixels = torch.randn(STEPS, ranks, BATCH, INPUTS)
    labels = torch.randint(CLASSES, (STEPS, ranks, BATCH, 1)).float()
    (folder / "data.bin").write_bytes(to_bytes([torch.cat([pixels, labels], -1)]))


def python_rank(folder, train):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    initial = read_floats(folder / "initial.bin")
    data = read_floats(folder / "data.bin").view(STEPS, ranks, BATCH, INPUTS + 1)
    for line in (folder / "cases.txt").read_text().splitlines():
        name, *words = line.split()
        net = train(words, rank, initial, data)
        (folder / f"python.{name}.{rank}.bin").write_bytes(to_bytes(state_of(net)))
    torch.distributed.barrier()
    os._exit(0)  # gloo's threads may outlive Python's end, which aborts a rank that has done all its work


def run_ranks(ranks, command):
    """With the environment that torchrun gives, and without the seconds that it needs to start."""
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


def run_cpp(folder, ranks, program, launcher):
    if launcher:
        command = [*shlex.split(launcher.format(ranks=ranks)), program, folder]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    else:
        run_ranks(ranks, [program, folder])


def compare(folder, ranks, names, rounded):
    """The cases that differ, with how much of the state does. `rounded`: how far those with this in their name may."""
    bad = []
    for name in names:
        allowed = max((limit for part, limit in rounded.items() if part in name), default=0)
        for rank in range(ranks):
            python, cpp = (read_floats(folder / f"{side}.{name}.{rank}.bin") for side in ("python", "cpp"))
            initial = read_floats(folder / "initial.bin")[: python.numel()]
            if torch.equal(python, initial) or not python.isfinite().all():
                bad.append(f"{name}, rank {rank}: the Python half has not trained")
            if python.numel() != cpp.numel():
                bad.append(f"{name}, rank {rank}: {cpp.numel()} values, not {python.numel()}")
            elif different := (python.view(torch.int32) != cpp.view(torch.int32)).sum().item():
                largest = (python - cpp).abs().max().item()
                line = f"{name}, rank {rank}: {different} of {python.numel()} values differ, by {largest:.1e} at most"
                if not largest <= allowed:
                    bad.append(line)
                else:
                    print(f"{line}, and may")
    return bad


def main(about, script, cases, train, quick_cases=None, rounded={}):
    """`cases`: the words of each by its name. `train(words, rank, initial, data)` returns a Python rank's module."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--only", default="", metavar="PART_OF_A_CASE")
    parser.add_argument(
        "--quick", action="store_true", help="fewer cases, where a script has some that are nearly the same"
    )
    parser.add_argument("--launcher", default="", help='of the C++ half, as "taas-run --gpus {ranks}"')
    parser.add_argument("--python-rank", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.python_rank:
        return python_rank(arguments.python_rank, train)
    chosen = (quick_cases or cases) if arguments.quick else cases
    lines = {name: " ".join([name, *map(str, words)]) for name, words in chosen.items() if arguments.only in name}
    bad = []
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_inputs(folder, ranks, lines.values())
            run_ranks(ranks, [sys.executable, script, "--python-rank", folder])
            run_cpp(folder, ranks, arguments.program, arguments.launcher)
            bad += [f"{ranks} ranks, {line}" for line in compare(folder, ranks, lines, rounded)]
            print(f"{ranks} ranks: {len(lines)} cases compared")
    if bad:
        sys.exit("\n".join(bad))
