"""Starting many: ranks on one node, agents on nodes of their own (network namespaces, as root), and a restart.

Each count is a row; `--bin` may be given again as `--other` to compare two builds in the same rounds.
"""

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
import time

import measure
import restart

RANKS = (8, 64, 256, 512, 1024)
NODES = (1, 4, 16, 64)
KINDS = ("ranks", "restart", "agents", "agents-restart")


def start_ranks(taas_run, count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return measure.wall_seconds([taas_run, "--nproc-per-node", str(count), "--no-python", "/bin/true"], folder)


def restart_ranks(taas_run, count: int) -> float:
    """From the failure of a rank to the last of the new ones running."""
    command = [taas_run, "--nproc-per-node", str(count), *measure.RESTART, "--no-python"]
    measure.RANKS = count  # that restart_seconds() looks for
    return restart.restart_seconds(command, str(pathlib.Path(taas_run).with_name("bench_rank")))


@contextlib.contextmanager
def nodes(count: int):
    """A cluster of so many, whose sshd run."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/cluster"))
    from namespaces import Cluster

    cluster = Cluster(*(f"n{i}" for i in range(count)))
    try:
        yield cluster
    finally:
        cluster.stop()


def over_ssh(cluster, taas_run, folder, *words) -> float:
    """One rank on each node; the seconds of the whole run."""
    names = [node.name for node in cluster.nodes]
    before = time.perf_counter()
    done = cluster.login.run(taas_run, "--hosts", ",".join(names), "--nproc-per-node", 1, *words, cwd=folder)
    took = time.perf_counter() - before
    if done.returncode != 0:
        sys.exit(f"{len(names)} agents: exit status {done.returncode}: {done.stderr}")
    return took


def start_agents(taas_run, count: int) -> float:
    with nodes(count) as cluster, tempfile.TemporaryDirectory() as folder:
        return over_ssh(cluster, taas_run, folder, "--no-python", "/bin/true")


def restart_agents(taas_run, count: int) -> float:
    """From the failure of rank 0 to the last of the new ranks running."""
    program = pathlib.Path(taas_run).with_name("bench_rank")
    with nodes(count) as cluster, tempfile.TemporaryDirectory() as folder:
        over_ssh(cluster, taas_run, folder, *measure.RESTART, "--no-python", program, folder, 0, "heed")
        return restart.seconds_between(folder, count, 0)


MEASURES = {
    "ranks": (start_ranks, RANKS),
    "restart": (restart_ranks, RANKS),
    "agents": (start_agents, NODES),
    "agents-restart": (restart_agents, NODES),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"), help="folder of taas-run"
    )
    parser.add_argument("--other", type=pathlib.Path, help="folder of another build, measured in the same rounds")
    parser.add_argument("--only", choices=KINDS, action="append", help="which curves; all by default")
    parser.add_argument("--most", type=int, default=max(RANKS), help="no larger counts than this one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="where the results go")
    return parser.parse_args()


def sample(kind: str, builds: dict, options) -> dict:
    """(count, build) -> summary of the rounds."""
    measured, counts = MEASURES[kind]
    samples = {(count, name): [] for count in counts if count <= options.most for name in builds}
    for number in range(options.rounds):
        for count in sorted({count for count, _ in samples}):
            for name in measure.rotated(builds, number):
                samples[count, name].append(measured(builds[name], count))
    return {key: measure.summary(values) for key, values in samples.items()}


def compared(found: dict, count: int) -> list:
    """The ratio of two builds, where there are two."""
    if (count, "other") not in found:
        return []
    ratio = measure.ratio(found[count, "taas-run"]["samples"], found[count, "other"]["samples"])
    return [f"{ratio['median']:.3f} ({ratio['min']:.2f} to {ratio['max']:.2f})"]


def main():
    options = arguments()
    kinds = options.only or KINDS
    if any(kind.startswith("agents") for kind in kinds):
        measure.need_root("a cluster of namespaces")
    folders = {"taas-run": options.bin, **({"other": options.other} if options.other else {})}
    builds = {name: str(folder.resolve() / "taas-run") for name, folder in folders.items()}
    results, rows = {}, []
    for kind in kinds:
        found = sample(kind, builds, options)
        results[kind] = {f"{count} {name}": result for (count, name), result in found.items()}
        rows += [
            [kind, str(count), *(measure.milliseconds(found[count, name]) for name in builds), *compared(found, count)]
            for count in sorted({count for count, _ in found})
        ]
    measure.report(
        "many",
        options,
        results,
        rows,
        ["curve", "count", *builds, *(["taas-run / other"] if options.other else [])],
        [],
    )


if __name__ == "__main__":
    os.environ.pop("OMP_NUM_THREADS", None)
    measure.run(main)
