"""Steps per second over the number of CPU machines, with samples from an object server that takes 50 ms for each.

The machines are simulated here, with one data worker each, and wait most of the time. Object server and dataset are
those of docs/examples/object_store.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = SOURCE / "docs" / "examples" / "object_store"
RANK = pathlib.Path(__file__).with_name("slow_source_rank.py")


@contextlib.contextmanager
def object_server(latency_ms: float):
    """Its address."""
    with subprocess.Popen(
        [sys.executable, EXAMPLE / "object_server.py", "--latency-ms", str(latency_ms)],
        text=True,
        stdout=subprocess.PIPE,
    ) as server:
        try:
            yield measure.announced(server)
        finally:
            server.terminate()


def one_run(url: str, machines: int, options) -> dict:
    """What the rank says. All machines must have taken part, and no batch may be missing."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        batches = options.batches * machines
        command = [
            options.bin / "taas-run",
            "--quiet",
            "--gpus",
            "1",
            "--cpus",
            str(machines),
            "--data-cores",
            "1",
            "--output",
            folder,
            RANK,
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (options.package, EXAMPLE))),
            "PYTHON_EXEC": sys.executable,
            "CUDA_VISIBLE_DEVICES": "",
            "BENCH_URL": url,
            "BENCH_MACHINES": str(machines),
            "BENCH_BATCHES": str(batches),
            "BENCH_RESULT": str(result),
        }
        subprocess.run(
            [str(word) for word in command],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=900,
        )
        seen = json.loads(result.read_text())
    if seen["batches"] != batches or len(seen["objects_by_worker"]) != machines:
        sys.exit(f"{machines} CPU machines: {batches} batches were to come from all of them: {seen}")
    return seen


def rounds(options) -> dict:
    samples = {count: [] for count in options.machines}
    with object_server(options.latency_ms) as url:
        for number in range(options.rounds):
            for count in measure.rotated(samples, number):
                samples[count].append(one_run(url, count, options))
    return samples


def rows(samples: dict) -> list:
    rates = {count: [run["steps_per_second"] for run in runs] for count, runs in samples.items()}
    one = rates[min(rates)]
    result = []
    for count, rate in rates.items():
        median, against = measure.summary(rate), measure.ratio(rate, one)
        result.append(
            [
                str(count),
                f"{median['median']:.1f} ({median['min']:.1f} to {median['max']:.1f})",
                f"{against['median']:.2f} ({against['min']:.2f} to {against['max']:.2f})",
            ]
        )
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"), help="folder of taas-run"
    )
    parser.add_argument(
        "--package",
        type=pathlib.Path,
        default=pathlib.Path("build/release/python"),
        help="folder of the built Python package",
    )
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--batches", type=int, default=40, help="for each machine")
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.bin, options.package = options.bin.resolve(), options.package.resolve()
    measure.need("torch")
    samples = rounds(options)
    measure.report(
        "a slow source",
        options,
        {str(count): runs for count, runs in samples.items()},
        rows(samples),
        ["CPU machines", "steps/s", f"this / {min(samples)} machine(s)"],
        [f"a batch is 4 objects, one after the other, of {options.latency_ms:g} ms each"],
    )


if __name__ == "__main__":
    measure.run(main)
