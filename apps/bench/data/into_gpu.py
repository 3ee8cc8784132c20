"""Batches into a GPU: plain and registered loaders, pageable, pinned and with device="cuda", paired in each round.

Every way is a fresh process that copies each batch to the GPU without waiting for it, sums some of its bytes there, and
compares the sums at the end. Needs an NVIDIA GPU, and an interpreter whose torch can use it. With --without-gpu batches
stay on the CPU, and ordinary memory stands in for pinned memory.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure  # noqa: E402

RANK = str(pathlib.Path(__file__).with_name("into_gpu_rank.py"))
COUNTS = {"image": 400, "digits": 20000}  # of which three tenths warm up
WITHOUT_GPU = ("plain", "taas", "taas-pinned", "remote-without-gpu", "remote-pinned", "pinning")
WAYS = (
    "plain",
    "plain-pinned",
    "taas",
    "taas-pinned",
    "taas-device",
    "remote-without-gpu",
    "remote-pinned",
    "pinning",
    "limit",
)


def gpu(options) -> str:
    """Its name; ends the benchmark with one line where there is none."""
    ask = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"
    try:
        name = subprocess.run(
            [options.python, "-c", ask], capture_output=True, text=True, timeout=300, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"into_gpu: {options.python} cannot import torch ({error}): name another interpreter with --python")
    if not name:
        sys.exit("into_gpu: PyTorch sees no GPU on this machine: run this where `nvidia-smi` shows one")
    return name


def one_round(way: str, kind: str, options, folder: str) -> dict:
    """What the process measured, or why it could not."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(options.package.resolve()),
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "TAAS_DATA_PLAN": f"{folder}/plan.json",
    }
    count = max(20, int(COUNTS[kind] * options.share))
    command = [
        options.python,
        RANK,
        way,
        kind,
        str(count),
        str(options.workers),
        "cpu" if options.without_gpu else "cuda",
    ]
    try:
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=options.patience, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done within {options.patience} s"}
    try:
        return {**json.loads(run.stdout.splitlines()[-1]), "said": run.stderr.strip()[-500:]}
    except (IndexError, ValueError):
        return {"error": f"exit status {run.returncode}: {run.stderr.strip()[-1500:]}"}


def last_line(error: str) -> str:
    """What people need; the JSON has all of it."""
    return error.splitlines()[-1][:300]


def rates(samples: list) -> list:
    return [sample["gigabytes_per_second"] for sample in samples if "error" not in sample]


def against(samples: dict, way: str, other: str) -> str:
    """The ratio of the rounds in which both were measured."""
    pairs = [
        (one["gigabytes_per_second"], two["gigabytes_per_second"])
        for one, two in zip(samples[way], samples[other])
        if "error" not in one and "error" not in two
    ]
    if way == other or not pairs:
        return "1" if pairs else "–"
    ratio = measure.ratio(*zip(*pairs))
    return f"{ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})"


def row(kind: str, way: str, samples: dict) -> list:
    measured = rates(samples[way])
    if not measured:
        return [kind, way, "failed", "–", "–", "–"]
    speed = measure.summary(measured)
    pinned = measure.summary([sample["pinned"] for sample in samples[way] if "error" not in sample])["median"]
    beside = "plain" if "plain" in samples else next(iter(samples))
    unpinned = {"taas-pinned": "taas", "taas-device": "taas-pinned", "remote-pinned": "remote-without-gpu"}.get(way)
    return [
        kind,
        way,
        f"{speed['median']:.2f} ({speed['min']:.2f} to {speed['max']:.2f})",
        f"{100 * pinned:.0f} %",
        against(samples, way, beside),
        against(samples, way, unpinned) if unpinned in samples else "–",
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--package",
        type=pathlib.Path,
        default=pathlib.Path("build/release/python"),
        help="folder of the built Python package",
    )
    parser.add_argument("--python", default=sys.executable, help="an interpreter with torch")
    parser.add_argument("--workers", type=int, default=4, help="worker processes of each way on this machine")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of batches, for a first look")
    parser.add_argument("--patience", type=int, default=300, help="seconds for one way in one round")
    parser.add_argument("--kinds", nargs="+", default=list(COUNTS), choices=COUNTS)
    parser.add_argument("--only", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--without-gpu", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.without_gpu:
        options.only = [way for way in options.only if way in WITHOUT_GPU]
    return options


def main():
    options = arguments()
    name = "none: ordinary memory stands in" if options.without_gpu else gpu(options)
    results = {kind: {way: [] for way in options.only} for kind in options.kinds}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for kind in options.kinds:
                for way in measure.rotated(options.only, number):
                    results[kind][way].append(one_round(way, kind, options, folder))
                    print(kind, way, results[kind][way][-1], file=sys.stderr, flush=True)
    rows = [row(kind, way, samples) for kind, samples in results.items() for way in samples]
    failures = [
        f"{kind} {way}: {last_line(sample['error'])}"
        for kind, samples in results.items()
        for way in samples
        for sample in samples[way]
        if "error" in sample
    ]
    measure.report(
        f"batches into a GPU ({name})",
        options,
        results,
        rows,
        ["batch", "way", "GB/s", "pinned", "this / plain", "this / without (taas, taas-pinned, remote-without-gpu)"],
        failures,
    )
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    measure.run(main)
