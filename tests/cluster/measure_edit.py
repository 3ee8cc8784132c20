"""From an edit of the program to the first all-reduce with it, on many nodes that have only what taas-run gives them.

Each node has warm Pythons (taas-run up --hosts) and a project folder of its own, which is empty. In each round one module is
written and the program started; the all-reduce sums what the module says, so that an old one would be seen. As root:

    python tests/cluster/measure_edit.py --taas-run build/release/bin/taas-run [--nodes 16] [--rounds 5] [--files 200] [--shared]
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

from namespaces import Cluster, give_own_runtime_folders

PROGRAM = """
import torch, torch.distributed as dist
import edited
dist.init_process_group("gloo")
total = torch.tensor(float(edited.VALUE))
dist.all_reduce(total)
if dist.get_rank() == 0:
    print("sum", int(total), flush=True)
dist.destroy_process_group()
"""
OUR_PYTHONS = os.path.dirname(sys.executable)


def make_project(cluster, files: int):
    folder = cluster.home / "project"
    (folder / "more").mkdir(parents=True)
    (folder / "train.py").write_text(PROGRAM)
    for place in range(files):
        (folder / f"more/part_{place}.py").write_text(f"# {place}\n" * 200)
    (folder / "edited.py").write_text("VALUE = 0\n")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", folder, *words], check=True)
    return folder


def give_own_folders(cluster, *folders):
    """As machines have them; these see the same /tmp and the same home."""
    give_own_runtime_folders(cluster.nodes)
    for node in cluster.nodes:
        node.check("mkdir", "-p", cluster.home / ".cache")
        for folder in (cluster.home / ".cache", *folders):
            node.hide(folder)


def with_this_python(cluster, taas_run):
    """taas-run as nodes start it: what ssh gives them has no Python with torch."""
    path = cluster.folder / "taas-run-with-python"
    path.write_text(f'#!/bin/sh\nPATH={OUR_PYTHONS}:$PATH exec {taas_run} "$@"\n')
    path.chmod(0o755)
    return path


def seconds_to_sum(cluster, taas_run, hosts, folder, value: int):
    """Of an edit to the first all-reduce, and to the end of the command; and whether all came from warm Pythons."""
    began = time.monotonic()
    (folder / "edited.py").write_text(f"VALUE = {value}\n")
    run = cluster.login.start(taas_run, "--in", "measured", *hosts, "--nproc-per-node", 1, "train.py", cwd=folder,
                              env={"PATH": f"{OUR_PYTHONS}:{os.environ['PATH']}"})
    line = run.stdout.readline()
    reduced = time.monotonic() - began
    result = run.end()
    if result.returncode or line != f"sum {value * len(cluster.nodes)}\n":
        sys.exit(f"said {line!r}\n{result.stderr}")
    return reduced, time.monotonic() - began, "does not fit" not in result.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taas-run", required=True)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=200, help="of the project, beside the one that is edited")
    parser.add_argument("--shared", action="store_true", help="nodes see the same project folder: nothing is delivered")
    arguments = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    taas_run = os.path.abspath(arguments.taas_run)
    names = [f"n{place}" for place in range(arguments.nodes)]
    cluster = Cluster(*names)
    try:
        folder = make_project(cluster, arguments.files)
        hosts = ["--hosts", ",".join(names), "--remote-taas-run", with_this_python(cluster, taas_run)]
        give_own_folders(cluster, *([] if arguments.shared else [folder]))
        up = cluster.login.run(taas_run, "up", *hosts, "--nproc-per-node", 1, "--name", "measured", cwd=folder, seconds=600)
        if up.returncode:
            sys.exit(up.stderr)
        while not seconds_to_sum(cluster, taas_run, hosts, folder, 1)[2]:  # the first ones may make them anew
            pass
        times = [seconds_to_sum(cluster, taas_run, hosts, folder, value) for value in range(2, arguments.rounds + 2)]
        reduced, ended, _ = zip(*times)
        print(f"{arguments.nodes} nodes, {arguments.files + 2} files: edit to first all-reduce {statistics.median(reduced):.2f} s "
              f"(of {min(reduced):.2f} to {max(reduced):.2f}), to the end {statistics.median(ended):.2f} s")
        cluster.login.run(taas_run, "down", "measured", *hosts)
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
