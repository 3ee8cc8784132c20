"""Batches of Python objects, and the start of a loop over large datasets: registered loaders beside plain ones.

Two workers on this machine each. Batches of one sample have num_workers=0: one data worker, and none of torch's. A way
is a fresh process; what it gives is compared with the other's.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure  # noqa: E402

RANK = str(pathlib.Path(__file__).with_name("objects_rank.py"))
BATCHES = ("lists", "texts", "dictionaries", "tensors", "a_stream", "one_sample")
DATASETS = ("small", "names", "tensors_200_mb")


def one_round(what: str, way: str, options) -> dict:
    run = subprocess.run(
        [sys.executable, RANK, what, way],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
        env={
            **os.environ,
            "PYTHONPATH": str(options.package.resolve()),
            "PYTHONHASHSEED": "0",
            "CUDA_VISIBLE_DEVICES": "",
        },
    )
    return json.loads(run.stdout.splitlines()[-1])


def rounds(what: str, options) -> dict:
    samples = {"taas": [], "plain": []}
    for number in range(options.rounds):
        for way in measure.rotated(samples, number):
            samples[way].append(one_round(what, way, options))
        if len({samples[way][-1]["digest"] for way in samples}) != 1:
            sys.exit(f"{what}: the two loaders gave different batches")
    return samples


def row(what: str, samples: dict) -> list:
    name, of = ("batches_per_second", "batches/s") if what.startswith("batches") else ("start_seconds", "ms")
    scale = 1 if of == "batches/s" else 1e3
    taas, plain = ([sample[name] * scale for sample in samples[way]] for way in ("taas", "plain"))
    growth = measure.summary([sample["grown_bytes"] / 2**20 for sample in samples["taas"]])
    share = measure.ratio(taas, plain)
    shown = [
        f"{each['median']:.1f} ({each['min']:.1f} to {each['max']:.1f})" for each in map(measure.summary, (taas, plain))
    ]
    return [
        what.replace("_", " "),
        of,
        *shown,
        f"{share['median']:.2f} ({share['min']:.2f} to {share['max']:.2f})",
        f"{growth['median']:.0f} MiB",
    ]


def main():
    every = [f"batches_of_{kind}" for kind in BATCHES] + [f"start_with_{kind}" for kind in DATASETS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--package",
        type=pathlib.Path,
        default=pathlib.Path("build/release/python"),
        help="folder of the built Python package",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=every, choices=every)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    measure.need("torch", "numpy", "cloudpickle")
    results = {what: rounds(what, options) for what in options.only}
    measure.report(
        "Python objects",
        options,
        results,
        [row(what, samples) for what, samples in results.items()],
        ["what", "", "taas", "DataLoader", "taas / DataLoader", "taas' rank grows by"],
        [],
    )


if __name__ == "__main__":
    measure.run(main)
