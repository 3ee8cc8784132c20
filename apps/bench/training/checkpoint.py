"""Saving and loading a checkpoint: libtaas against torch.save and torch.load, in one run and rotating order.

A third of the bytes are parameters, the rest Adam's state. Each sample is a process of its own. Loading ends with the
tensors in the model and in the optimizer. save_checkpoint has its file on disk (fsync) before it returns, which
torch.save has not: the third contender is torch.save with an fsync.

usage: checkpoint.py [--bin FOLDER] [--mebibytes 400] [--rounds 9] [--folder FOLDER] [--json FILE]
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import measure  # noqa: E402

NUMBERS = 1 << 20


def resident_kibibytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4


def contend(task, path, mebibytes, syncs):
    """Python's half, in a process of its own: prints the seconds and by how many KiB its memory grew."""
    import torch

    count = mebibytes // 12
    weights = torch.nn.ParameterDict({str(i): torch.full((NUMBERS,), float(i)) for i in range(count)})
    optimizer = torch.optim.Adam(weights.parameters(), lr=0.1)
    if task == "save":
        for parameter in weights.parameters():
            optimizer.state[parameter] = {
                "step": torch.tensor(1.0),
                "exp_avg": parameter.detach() + 1,
                "exp_avg_sq": parameter.detach() + 2,
            }
    before, began = resident_kibibytes(), time.perf_counter()
    if task == "save":
        whole = {
            "format": "taas checkpoint",
            "version": 1,
            "epoch": 1,
            "extra": {},
            "model": weights.state_dict(),
            "optimizer": optimizer.state_dict(),
        }
        torch.save(whole, path)
        if syncs:
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
    else:
        read = torch.load(path, weights_only=True)
        weights.load_state_dict(read["model"])
        optimizer.load_state_dict(read["optimizer"])
    took = time.perf_counter() - began
    print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def contenders(options):
    own = [sys.executable, __file__, "--contender"]
    return {
        "libtaas": [str(options.bin / "checkpoint_times")],
        "torch": own,
        "torch, fsync": [*own[:-1], "--syncs", "--contender"],
    }


def sample(command, task, path, mebibytes):
    os.sync()
    said = subprocess.run([*command, task, path, str(mebibytes)], check=True, capture_output=True, text=True).stdout
    seconds, kibibytes = said.split()
    return float(seconds), int(kibibytes) / 1024


def run(options):
    samples = {}
    commands = contenders(options)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for task in ("save", "load"):
            names = [name for name in commands if task == "save" or name != "torch, fsync"]
            for number in range(options.rounds):
                for name in measure.rotated(names, number):
                    path = os.path.join(folder, f"{name.split(',')[0]}.pt")
                    samples.setdefault(f"{task}: {name}", []).append(
                        sample(commands[name], task, path, options.mebibytes)
                    )
    return samples


def report(samples, options):
    rows = {
        name: {
            "seconds": statistics.median(each[0] for each in all_of),
            "MiB": statistics.median(each[1] for each in all_of),
        }
        for name, all_of in samples.items()
    }
    print(f"{options.mebibytes} MiB, medians of {options.rounds} rounds")
    for name, row in rows.items():
        task = name.split(":")[0]
        paired = [own[0] / other[0] for own, other in zip(samples[f"{task}: libtaas"], samples[name])]
        print(
            f"{name:20} {row['seconds']:.3f} s  grew by {row['MiB']:.0f} MiB  libtaas/this "
            f"{statistics.median(paired):.2f} ({min(paired):.2f}…{max(paired):.2f})"
        )
    if options.json:
        options.json.write_text(json.dumps({"mebibytes": options.mebibytes, "samples": samples}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--mebibytes", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", help="where the files are")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--syncs", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--contender", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        task, path, mebibytes = options.contender
        contend(task, path, int(mebibytes), options.syncs)
    else:
        measure.need("torch")
        report(run(options), options)


if __name__ == "__main__":
    measure.run(main)
