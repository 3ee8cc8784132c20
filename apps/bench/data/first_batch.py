"""The first batch of a loop, and the gap between two epochs: prepared by `--loader`, and from torch's DataLoader."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
WAYS = ("taas", "fork", "persistent")


def one_round(way: str, options, folder: str) -> dict:
    data = ["--cpus", "1", "--data-cores", "1", "--loader", "prepared:loader"] if way == "taas" else []
    command = [
        options.bin / "taas-run",
        "--nproc-per-node",
        "1",
        "--quiet",
        "--output",
        folder,
        *data,
        str(HERE / "first_batch_rank.py"),
        way,
    ]
    run = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(HERE), "PYTHON_EXEC": sys.executable, "CUDA_VISIBLE_DEVICES": ""},
    )
    return json.loads(run.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"), help="folder of taas-run"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    measure.need("torch")
    samples = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for way in measure.rotated(WAYS, number):
                samples[way].append(one_round(way, options, folder))
    rows = []
    for way, values in samples.items():
        gaps = [statistics.median(value["boundary_seconds"]) for value in values]
        rows.append(
            [
                way,
                *(
                    measure.milliseconds(measure.summary(row))
                    for row in (
                        [value["first_batch_seconds"] for value in values],
                        gaps,
                        [value["batch_seconds"] for value in values],
                    )
                ),
            ]
        )
    measure.report(
        "first batch",
        options,
        samples,
        rows,
        ["way", "first batch", "end of a loop and first batch of the next", "any other batch"],
        [],
    )


if __name__ == "__main__":
    measure.run(main)
