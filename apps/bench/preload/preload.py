"""What preloading gains: 8 ranks of PyTorch on gloo under taas-run, taas-run --preload none and torchrun, in turns.

start: from the command to its exit. restart: from the failure of a rank to the end of the first all-reduce of the next
generation in the last rank. memory: PSS of the 8 ranks after an all-reduce, and of everything that the launcher
started.

To be restarted torchrun needs `--standalone` and a new store for each generation (TORCH_DISABLE_SHARE_RDZV_TCP_STORE):
without these, ranks of the second generation find the addresses of the first in the store, and gloo of torch 2.15
cannot connect.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import measure  # noqa: E402

RANK = str(HERE / "rank.py")


def launchers(bin_folder: pathlib.Path, what: str) -> dict:
    ranks = ["--nproc-per-node", str(measure.RANKS)]
    own = [str(bin_folder / "taas-run")]
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    if what == "restart":
        torchrun = ["env", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1", *torchrun, "--standalone"]
    return {
        "taas-run": [*own, *ranks],
        "taas-run --preload none": [*own, "--preload", "none", *ranks],
        "torchrun": [*torchrun, *ranks],
    }


def summed(folder: pathlib.Path, generation: int) -> list:
    """(instant, process) of every rank of a generation; fewer ranks than there should be are no result."""
    marks = [tuple(map(int, path.read_text().split())) for path in folder.glob(f"summed-{generation}-*")]
    if len(marks) != measure.RANKS:
        sys.exit(f"{len(marks)} ranks of generation {generation} instead of {measure.RANKS}")
    return marks


def start_seconds(command: list, folder: pathlib.Path) -> float:
    took = measure.wall_seconds([*command, RANK, folder, "end"], folder)
    summed(folder, 0)
    return took


def restart_seconds(command: list, folder: pathlib.Path) -> float:
    measure.wall_seconds([*command, *measure.RESTART, RANK, folder, "fail"], folder)
    return (max(instant for instant, _ in summed(folder, 1)) - int((folder / "failed").read_text())) / 1e9


def memory_megabytes(command: list, folder: pathlib.Path) -> tuple:
    process = measure.start([*command, RANK, folder, "hold"], folder)
    measure.wait_until(
        lambda: len(list(folder.glob("summed-0-*"))) == measure.RANKS, "all ranks have summed", process, 120
    )
    ranks = [pid for _, pid in summed(folder, 0)]
    result = tuple(sum(map(measure.pss_bytes, pids)) / 2**20 for pids in (ranks, measure.family(process.pid)))
    (folder / "go").touch()
    if process.wait() != 0:
        sys.exit(f"{command[0]} failed")
    return result


MEASURES = {"start": start_seconds, "restart": restart_seconds, "memory": lambda *given: memory_megabytes(*given)[0]}


def compare(what: str, commands: dict, rounds: int) -> dict:
    samples = {name: [] for name in commands}
    for number in range(rounds):
        for name in measure.rotated(commands, number):
            with tempfile.TemporaryDirectory() as folder:
                samples[name].append(MEASURES[what](commands[name], pathlib.Path(folder)))
            print(f"{what} {number} {name}: {samples[name][-1]:.3f}", file=sys.stderr)
    return samples


def show(result: dict, unit: str) -> str:
    return f"{result['median']:.2f} {unit} ({result['min']:.2f} to {result['max']:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"), help="folder of taas-run"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--what", default="start,restart,memory")
    parser.add_argument("--against", default="taas-run --preload none,torchrun", help="launchers beside taas-run")
    parser.add_argument("--json", type=pathlib.Path, help="where the results go; measures that are there already stay")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    measure.need("torch")
    subprocess.run([sys.executable, "-c", "import torch.distributed.run"], check=True)  # warms up the disk's cache
    results, rows = {}, []
    for what in options.what.split(","):
        commands = {
            name: command
            for name, command in launchers(options.bin, what).items()
            if name in ["taas-run", *options.against.split(",")]
        }
        samples = compare(what, commands, options.rounds)
        unit = "MB" if what == "memory" else "s"
        for name, values in samples.items():
            ratio = measure.ratio(samples["taas-run"], values)
            rows.append([what, name, show(measure.summary(values), unit), show(ratio, "")])
            results.setdefault(what, {})[name] = {unit: measure.summary(values), "taas_run_over": ratio}
    if options.json and options.json.exists():
        results = {**json.loads(options.json.read_text())["results"], **results}
    measure.report("preload", options, results, rows, ["measure", "launcher", "8 ranks", "taas-run / this"], [])


if __name__ == "__main__":
    measure.run(main)
