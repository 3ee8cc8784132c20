"""A training step of C++ DDP beside one of Python's DDP: wall clock, CPU time and peak memory of rank 0, over gloo.

    .venv/bin/python apps/bench/training/ddp_step.py [--ranks 2] [--rounds 9] [--json FILE]

Each round runs both halves for each model, the one after the other, in rotating order, with one compute thread a rank.
Both are started by taas-run. Ratios are Python's figure over that of C++ in the same round: above 1 C++ is better. The
models have the same sizes, data and optimizer, but not the same initial weights: equal numbers are tests/parity's
business.
"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import measure  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
STEPS = {"wide": 60, "small": 1500, "convolutions": 800}
NAMES = {"wide": "4 × Linear(1024)", "small": "4 × Linear(64)", "convolutions": "two convolutions"}


def one_run(options, half: str, model: str) -> dict:
    program = [str(options.bin / "ddp_step")] if half == "C++" else [sys.executable, str(HERE / "ddp_step_rank.py")]
    command = [
        str(options.bin / "taas-run"),
        "--nproc-per-node",
        str(options.ranks),
        *program,
        model,
        str(STEPS[model]),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(lines) != 1:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    result = json.loads(lines[0])
    if not abs(result["check"]) < float("inf"):
        sys.exit(f"{half} has not trained {model}: {result}")
    return result


def main():
    parser = measure.parser(__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    options = measure.parsed(parser)
    measure.need("torch")
    samples = {model: {half: [] for half in ("C++", "Python")} for model in STEPS}
    for number in range(options.rounds):
        for model, halves in samples.items():
            for half in measure.rotated(halves, number):
                halves[half].append(one_run(options, half, model))
    results, rows = {}, []
    for model, halves in samples.items():
        figures = {
            half: {key: [run[key] for run in runs] for key in ("wall", "cpu", "peak_kib")}
            for half, runs in halves.items()
        }
        ratios = {key: measure.ratio(figures["Python"][key], figures["C++"][key]) for key in figures["C++"]}
        results[model] = {"figures": figures, "python_over_cpp": ratios}
        rows.append(
            [
                NAMES[model],
                *(measure.milliseconds(measure.summary(figures[half]["wall"])) for half in figures),
                *(
                    f"{ratios[key]['median']:.2f} ({ratios[key]['min']:.2f} to {ratios[key]['max']:.2f})"
                    for key in ("wall", "cpu", "peak_kib")
                ),
            ]
        )
    header = ["model", "C++ step", "Python step", "wall, Python / C++", "CPU, Python / C++", "memory, Python / C++"]
    measure.report("DDP step", options, results, rows, header, [f"{options.ranks} ranks, gloo, one thread each"])


if __name__ == "__main__":
    measure.run(main)
