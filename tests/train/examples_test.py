"""Runs the programs of docs/examples/cpp by their names.

usage: examples_test.py TAAS_RUN
"""

import os
import re
import subprocess
import sys
import tempfile


def run(*command, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TAAS_", "TORCHELASTIC_"))}
    done = subprocess.run(
        [TAAS_RUN, *command],
        cwd=folder,
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()


def collectives(folder):
    for ranks in (1, 4):
        assert run("--nproc-per-node", str(ranks), "collectives_tour", folder=folder) == [
            f"get_rank, get_world_size: rank 0 of {ranks}",
            "barrier: all ranks are here",
            f"send, recv: the sum of all ranks came round as {sum(range(ranks))}",
            "broadcast: every rank has rank 0's 42",
            f"all_reduce: 1 + … + {ranks} = {ranks * (ranks + 1) // 2}",
            f"gather: rank 0 has {[10 * rank for rank in range(ranks)]}",
            "scatter: every rank has the square of its rank",
        ]


def sampler(folder):
    lines = run("--nproc-per-node", "4", "sampler_tour", folder=folder)
    shares = {}
    for line in lines:
        if not line.startswith("  rank "):
            shares[line] = []
        else:
            shares[list(shares)[-1]].append([int(word) for word in line.split(":")[1].split()])
    everything, in_order, even, first, second = shares.values()
    assert everything == [list(range(10))] * 4, lines
    assert in_order == [[0, 4, 8], [1, 5, 9], [2, 6, 0], [3, 7, 1]], lines
    assert even == [[0, 4], [1, 5], [2, 6], [3, 7]], lines
    for epoch in (first, second):
        assert set(sum(epoch, [])) == set(range(10)), lines
    assert first != second, "every epoch has the same order"


def auto_mode(folder):
    (alone,) = run("--nproc-per-node", "1", "auto_mode", folder=folder)
    assert re.fullmatch(r"one process on (cpu|cuda): loss 0\.\d{4}", alone), alone
    (many,) = run("--nproc-per-node", "2", "auto_mode", folder=folder)
    assert re.fullmatch(r"2 processes on (cpu|cuda): loss 0\.\d{4}", many), many


if __name__ == "__main__":
    TAAS_RUN = sys.argv[1]
    for case in (collectives, sampler, auto_mode):
        with tempfile.TemporaryDirectory() as scratch:
            case(scratch)
