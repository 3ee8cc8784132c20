"""Peak memory of all processes of a loop over a large dataset.

In a run with data workers on this machine, and torch's DataLoader with as many workers, forked and spawned.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ("memmap", "tensor", "array")
WAYS = ("taas run", "plain fork", "plain spawn")
LOOK_EVERY_SECONDS = 0.1


def one_round(kind: str, way: str, options, folder: str) -> dict:
    program = [str(HERE / "memory_rank.py"), kind, way, str(options.megabytes << 20), str(options.workers), folder]
    launcher = [
        str(options.bin / "taas-run"),
        "--nproc-per-node",
        "1",
        "--cpus",
        "1",
        "--data-cores",
        str(options.workers),
        "--quiet",
        "--output",
        folder,
    ]
    command = [*launcher, *program] if way == "taas run" else [sys.executable, *program]
    environment = {**os.environ, "PYTHON_EXEC": sys.executable, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    peak = 0
    try:
        while process.poll() is None:
            peak = max(peak, sum(map(measure.pss_bytes, measure.family(process.pid))))
            time.sleep(LOOK_EVERY_SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        sys.exit(f"{kind}, {way}: exit status {process.returncode}")
    said = json.loads(process.stdout.read().splitlines()[-1])
    return {"peak_bytes": peak, "seconds": time.monotonic() - started, **said}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"), help="folder of taas-run"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--megabytes", type=int, default=430, help="of the dataset")
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    measure.need("torch", "numpy", "cloudpickle")
    samples, rows = {}, []
    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(options.rounds):
                for way in measure.rotated(WAYS, number):
                    samples.setdefault(f"{kind}, {way}", []).append(one_round(kind, way, options, folder))
        sums = {sample["sum"] for way in WAYS for sample in samples[f"{kind}, {way}"]}
        assert len(sums) == 1, f"the ways differ in what they gave: {sums}"
        peaks = {way: max(sample["peak_bytes"] for sample in samples[f"{kind}, {way}"]) for way in WAYS}
        for way, peak in peaks.items():
            rows.append([kind, way, f"{peak / 1e6:.0f} MB", *(f"{peak / peaks[other]:.2f}" for other in WAYS[1:])])
    header = ["dataset", "way", "peak of all processes", *(f"to {other}" for other in WAYS[1:])]
    measure.report("memory", options, samples, rows, header, [])


if __name__ == "__main__":
    measure.run(main)
