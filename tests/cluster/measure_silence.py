"""What a silence costs with the default --node-timeout: cuts of the network that a run outlives, and how soon a node
that is gone is noticed.

Two nodes of two ranks that do all-reduces over gloo without end; the second node is cut off for some seconds, both ways
or one way, its agent is killed, or it loses power. As root:

    python tests/cluster/measure_silence.py --taas-run build/release/bin/taas-run
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

from namespaces import Cluster
from network import CUTS
from runs import PROGRAMS

NODES = ("n0", "n1")
CUT = "n1"
RANKS = 4
WAYS = ("both ways", "out", "in")


def lose_power(cluster):
    cluster.network.cut(CUT)  # first: the kernel of a dead machine says no farewell
    cluster[CUT].crash()


ENDS = {"its agent is killed": lambda cluster: cluster[CUT].kill_all("--as-agent"), "it loses power": lose_power}
PATIENCE_SECONDS = 120


class Run:
    def __init__(self, cluster, taas_run: str, signs: pathlib.Path):
        self.signs = signs
        self.folder = cluster.home / "runs"
        words = ["--hosts", ",".join(NODES), "--nproc-per-node", 2, "--max-restarts", 0, "--output", self.folder]
        self.process = cluster.login.start(taas_run, *words, PROGRAMS / "reducing_rank.py", signs)
        if self.wait(lambda: self.oldest_sign() > 0, 180) is None:
            sys.exit("the ranks did not start")

    def oldest_sign(self) -> float:
        """Of each rank's last all-reduce: when the first of these was; 0 before all ranks have done one."""
        texts = [path.read_text().split() for path in self.signs.iterdir()]
        return min(int(words[-1]) for words in texts) / 1e9 if len(texts) == RANKS and all(texts) else 0

    def lost_node(self) -> bool:
        return '"node_lost"' in (self.folder / "latest" / "journal.jsonl").read_text()

    def wait(self, what, seconds: float = PATIENCE_SECONDS):
        """When it was so; None: it never was, or the run has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.process.poll():
            if what():
                return time.monotonic()
            time.sleep(0.002)
        return time.monotonic() if what() else None


def with_run(taas_run: str, measure):
    cluster = Cluster(*NODES)
    with tempfile.TemporaryDirectory() as signs:
        try:
            return measure(cluster, Run(cluster, taas_run, pathlib.Path(signs)))
        finally:
            cluster.stop()


def outlive(cluster, run: Run, how: str, seconds: float):
    """How long after the cut the ranks trained on; None: the run was lost."""
    CUTS[how](cluster.network, CUT)
    time.sleep(seconds)
    cluster.network.heal()
    healed = time.monotonic()
    back = run.wait(lambda: run.oldest_sign() > healed)
    return back and back - healed


def notice(cluster, run: Run, how: str):
    began = time.monotonic()
    ENDS[how](cluster)
    told = run.wait(run.lost_node)
    return told and told - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--taas-run", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, nargs="+", default=[5, 10, 15])
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    binary = str(options.taas_run.resolve())
    rows = []

    def measure(what: str, sample):
        samples = [with_run(binary, sample) for _ in range(options.rounds)]
        rows.append({"what": what, "seconds": samples})
        seen = [s for s in samples if s is not None]
        text = f"{statistics.median(seen):.3g} s ({min(seen):.3g} to {max(seen):.3g})" if seen else "never"
        print(f"| {what} | {text} | {len(samples) - len(seen)} of {len(samples)} |", flush=True)

    print("| a cut of the second node's network | trained on after | lost |\n|---|---|---|")
    for seconds in options.seconds:
        for how in WAYS:
            measure(
                f"{seconds:g} s, {how}",
                lambda cluster, run, how=how, seconds=seconds: outlive(cluster, run, how, seconds),
            )
    print("\n| the second node is gone | noticed after | never |\n|---|---|---|")
    for how in ENDS:
        measure(how, lambda cluster, run, how=how: notice(cluster, run, how))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
