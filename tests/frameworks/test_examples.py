"""docs/examples: every command that they name."""

import re

import pytest

from conftest import EXAMPLES, full_only, need


@pytest.mark.parametrize("ranks", [1, 4])
def test_collectives_tour(runner, ranks):
    need("torch")
    result = runner.taas_run("--nproc-per-node", ranks, EXAMPLES / "collectives_tour.py")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"get_rank, get_world_size: rank 0 of {ranks}",
        "barrier: all ranks are here",
        "send, recv: rank 0's 7 has gone down the line",
        f"isend, irecv: the sum of all ranks came round as {sum(range(ranks))}",
        "broadcast: every rank has rank 0's 42",
        f"all_reduce: 1 + … + {ranks} = {ranks * (ranks + 1) // 2}",
        f"gather: rank 0 has {[10 * rank for rank in range(ranks)]}",
        "scatter: every rank has the square of its rank",
    ]


def test_auto_mode(runner):
    need("torch")
    script = EXAMPLES / "auto_mode.py"
    alone, below = runner.python(script, "--epochs", 3), runner.taas_run(script, "--epochs", 3)
    many = runner.taas_run("--nproc-per-node", 2, script, "--epochs", 3)
    assert re.fullmatch(r"one process on cpu: loss 0\.\d+\n", alone.stdout), alone.stderr
    assert below.stdout == alone.stdout, below.stderr
    assert re.fullmatch(r"2 processes on cpu: loss 0\.\d+\n", many.stdout), many.stderr


@full_only
@pytest.mark.parametrize("name, package", [("lightning_digits.py", "lightning"), ("deepspeed_zero.py", "deepspeed")])
def test_trainers_alone_and_as_their_first_lines_say(runner, name, package):
    need(package)
    for shape in (("--nproc-per-node", 1), ("--nnodes", 2, "--nproc-per-node", 2)):
        result = runner.taas_run(*shape, EXAMPLES / name)
        assert result.returncode == 0, result.stderr
        assert re.search(r"^\d ranks, \d+ steps, loss ", result.stdout, re.MULTILINE), result.stdout
