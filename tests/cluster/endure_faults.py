"""One training run with checkpoints under random faults: its last checkpoint has to be that of an undisturbed run.

Four nodes of two ranks and a spare. Faults, now and then two at once: a rank is killed, an agent and its ranks are
killed, an agent alone is killed, a node's link is cut silently and heals. As root:
    python tests/cluster/endure_faults.py --taas-run build/release/bin/taas-run --faults 100
"""

import argparse
import collections
import filecmp
import json
import pathlib
import random
import re
import sys
import time

from namespaces import Cluster
from processes import send

NODES = ("n0", "n1", "n2", "n3", "n4")
RANKS = 8
EPOCH_IMAGES = 512
TRAINING = ("--train-images", EPOCH_IMAGES, "--test-images", 64, "--batch-size", 8, "--threads", 1)
PATIENCE_SECONDS = 180
PAUSE_SECONDS = (0.3, 2.0)  # of training between faults


class Run:
    """taas-run on the login node, what it printed, and the generation that trains."""

    def __init__(self, cluster, taas_run, folder: pathlib.Path, epochs: int):
        self.cluster = cluster
        self.output = folder
        self.log = open(folder / "console", "w+b")
        self.process = cluster.login.start(
            taas_run,
            "--hosts",
            ",".join(NODES),
            "--gpus",
            RANKS,
            "--gpus-per-node",
            2,
            "--spares",
            1,
            "--monitor-interval",
            "0",
            "--max-restarts",
            100000,
            "--node-timeout",
            2.5,
            "--json",
            "--output",
            folder / "runs",
            "train",
            *TRAINING,
            "--epochs",
            epochs,
            stdout=self.log,
            stderr=self.log,
        )

    def journal(self) -> list:
        lines = (self.output / "console").read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def generation(self) -> int:
        started = [entry["generation"] for entry in self.journal() if entry.get("action") == "start_generation"]
        return started[-1] if started else -1

    def trains(self) -> bool:
        """The ranks that were started last have said their first words of training, and have not been stopped since."""
        seen = False
        for entry in self.journal():
            if entry.get("action") in ("start_generation", "sweep_generation", "kill_generation", "report_failure"):
                seen = False
            if entry.get("event") == "output" and re.match(r"epoch \d+/\d+ (step|done)", entry["text"]):
                seen = True
        return seen

    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait_until_it_trains(self):
        until = time.monotonic() + PATIENCE_SECONDS
        while not self.ended() and not self.trains():
            if time.monotonic() > until:
                sys.exit(f"it does not train any more; see {self.output}")
            time.sleep(0.1)

    def checkpoint(self) -> pathlib.Path:
        return next((self.output / "runs").glob("[0-9]*/output/checkpoint.pt"))


def ranks_of(cluster, node: str) -> list:
    return [pid for pid, line in cluster[node].processes("--train-images").items() if "taas-run" not in line]


# Each returns whether there was anything to hit.


def kill_a_rank(cluster, node: str, chance) -> bool:
    ranks = ranks_of(cluster, node)
    if ranks:
        send(chance.choice(ranks), 9)
    return bool(ranks)


def cut_for_a_while(cluster, node: str, chance) -> bool:
    if not ranks_of(cluster, node):
        return False
    cluster.network.cut(node)
    time.sleep(chance.uniform(0.5, 4))
    cluster.network.heal()
    return True


FAULTS = {
    "rank killed": kill_a_rank,
    "agent and ranks killed": lambda cluster, node, chance: bool(cluster[node].kill_all()),
    "agent killed": lambda cluster, node, chance: bool(cluster[node].kill_all("--as-agent")),
    "link cut": cut_for_a_while,
}


def disturb(run: Run, count: int, chance) -> collections.Counter:
    done = collections.Counter()
    while sum(done.values()) < count:
        run.wait_until_it_trains()
        if run.ended():
            break
        time.sleep(chance.uniform(*PAUSE_SECONDS))
        for node in chance.sample(NODES, 2 if chance.random() < 0.25 else 1):
            name = chance.choice(list(FAULTS))
            done[name] += FAULTS[name](run.cluster, node, chance)
    return done


def train(taas_run, folder: pathlib.Path, epochs: int, faults: int, seed: int):
    folder.mkdir(parents=True)
    cluster = Cluster(*NODES)
    try:
        run = Run(cluster, taas_run, folder, epochs)
        done = disturb(run, faults, random.Random(seed)) if faults else {}
        code = run.process.wait()
        if code != 0:
            sys.exit(f"taas-run returned {code}; see {folder}")
        return run, done
    finally:
        cluster.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--taas-run", required=True, type=pathlib.Path)
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="for what the runs write; must not exist")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    binary = options.taas_run.resolve()
    folder = options.folder.resolve()
    calm, _ = train(binary, folder / "calm", options.epochs, 0, 0)
    start = time.monotonic()
    disturbed, done = train(binary, folder / "disturbed", options.epochs, options.faults, options.seed)
    print(
        f"{sum(done.values())} faults ({', '.join(f'{n} {name}' for name, n in sorted(done.items()))}), "
        f"{disturbed.generation() + 1} generations, {time.monotonic() - start:.0f} s"
    )
    if sum(done.values()) < options.faults:
        sys.exit("the training was over before all faults had come: give more --epochs")
    if not filecmp.cmp(calm.checkpoint(), disturbed.checkpoint(), shallow=False):
        sys.exit(f"the checkpoints differ: {calm.checkpoint()} {disturbed.checkpoint()}")
    print("the last checkpoint is equal to that of the undisturbed run, to the bit")


if __name__ == "__main__":
    main()
