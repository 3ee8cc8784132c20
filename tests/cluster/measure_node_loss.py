"""From the loss of a node to all ranks running again on others: taas-run and torchrun, side by side.

Four nodes of two ranks; taas-run has three in use and one spare, torchrun takes part with all four (--nnodes 3:4,
c10d). A node is lost by kill -9 of the launcher and its ranks there, or by a silent cut of its link; ranks do
all-reduces without end, or nothing together. As root:

    python tests/cluster/measure_node_loss.py --taas-run build/release/bin/taas-run
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

from namespaces import Cluster
from runs import PROGRAMS

NODES = ("n0", "n1", "n2", "n3")
LOST = "n2"
RANKS_AFTER = 6
FAULTS = {"kill -9": lambda cluster: cluster[LOST].kill_all(), "silent cut": lambda cluster: cluster.network.cut(LOST)}
LAUNCHERS = ("taas-run", "torchrun")


def start(cluster, launcher: str, taas_run: str, program: list) -> int:
    """Returns the number of ranks before the loss."""
    if launcher == "taas-run":
        cluster.login.start(
            taas_run,
            "--hosts",
            ",".join(NODES),
            "--gpus",
            6,
            "--gpus-per-node",
            2,
            "--spares",
            1,
            "--max-restarts",
            3,
            "--node-timeout",
            2.5,
            *program,
        )
        return 6
    for name in NODES:
        cluster[name].start(
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nnodes",
            "3:4",
            "--nproc-per-node",
            2,
            "--max-restarts",
            3,
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            "n0:29400",
            "--rdzv-id",
            "x",
            *program,
        )
    return 8


def running(folder: pathlib.Path) -> dict:
    """Process → its first sign of life, in nanoseconds."""
    return {path.name: int(text.split("\n", 1)[0]) for path in folder.iterdir() if "\n" in (text := path.read_text())}


def wait_for(folder: pathlib.Path, count: int, known, seconds: float):
    """When the last of so many processes that are not known gave its first sign; None when they never did."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        new = [first for name, first in running(folder).items() if name not in known]
        if len(new) >= count:
            return max(new) / 1e9
        time.sleep(0.02)
    return None


def seconds_to_recover(launcher: str, fault: str, together: bool, taas_run: str, patience: float):
    cluster = Cluster(*NODES)
    with tempfile.TemporaryDirectory() as signs:
        try:
            folder = pathlib.Path(signs)
            program = [str(PROGRAMS / "reducing_rank.py"), signs, *([] if together else ["alone"])]
            count = start(cluster, launcher, taas_run, program)
            if wait_for(folder, count, (), 180) is None:
                sys.exit(f"{launcher}: the ranks did not start")
            known = set(running(folder))
            lost = time.monotonic()
            FAULTS[fault](cluster)
            back = wait_for(folder, RANKS_AFTER, known, patience)
            return back and back - lost
        finally:
            cluster.stop()


def show(samples: list, patience: float) -> str:
    seen = [s for s in samples if s is not None]
    text = f"{statistics.median(seen):.2f} s ({min(seen):.2f} to {max(seen):.2f})" if seen else ""
    never = len(samples) - len(seen)
    return ", ".join(filter(None, [text, f"not within {patience:g} s: {never} of {len(samples)}" if never else ""]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--taas-run", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=120, help="seconds after which a launcher has not recovered")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    cases = [(fault, together) for fault in FAULTS for together in (True, False)]
    results = {case: {name: [] for name in LAUNCHERS} for case in cases}
    for number in range(options.rounds):
        for case in cases:
            for name in LAUNCHERS if number % 2 == 0 else reversed(LAUNCHERS):
                results[case][name].append(
                    seconds_to_recover(name, *case, str(options.taas_run.resolve()), options.patience)
                )
    print("| fault | ranks do | " + " | ".join(LAUNCHERS) + " |\n|" + "---|" * (2 + len(LAUNCHERS)))
    for (fault, together), samples in results.items():
        does = "all-reduces" if together else "nothing together"
        print(f"| {fault} | {does} | " + " | ".join(show(samples[name], options.patience) for name in LAUNCHERS) + " |")
    if options.json:
        rows = [{"fault": fault, "together": together, **samples} for (fault, together), samples in results.items()]
        options.json.write_text(json.dumps({"seconds": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
