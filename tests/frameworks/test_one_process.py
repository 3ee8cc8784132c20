"""Programs of one process are what they are without a launcher."""

import pytest
from conftest import PROGRAMS, free_port, need


def test_data_parallel_is_unchanged(runner):
    need("torch")
    script = PROGRAMS / "data_parallel.py"
    alone, below = runner.python(script, "--lr", "1"), runner.taas_run(script, "--lr", "1")
    assert alone.returncode == below.returncode == 0, below.stderr
    assert below.stdout == alone.stdout
    assert len(alone.stdout.splitlines()) == 5


def test_a_script_that_knows_nothing_of_ranks(runner):
    script = runner.folder / "plain.py"
    script.write_text("import sys\nprint(sys.argv[1:], __name__, sys.stdin.read())\nsys.exit(5)\n")
    alone, below = runner.python(script, "a"), runner.taas_run(script, "a")
    assert (below.returncode, below.stdout) == (alone.returncode, alone.stdout) == (5, "['a'] __main__ \n")


@pytest.mark.parametrize("way", ["own", "given", "rpc"])
def test_workers_of_a_program_find_each_other(runner, way):
    """With the program's MASTER_PORT, as in PyTorch's tutorials, with what was there, over torch.distributed.rpc."""
    need("torch")
    script = PROGRAMS / "spawn_workers.py"
    alone = runner.python(script, way)
    assert (alone.returncode, alone.stdout) == (0, "total 6\n"), alone.stderr
    for options in ((), ("--gpus", 1), ("--nproc-per-node", 1)):
        below = runner.taas_run(*options, script, way)
        assert (below.returncode, below.stdout) == (0, alone.stdout), f"{options}\n{below.stderr}"


def test_two_of_such_programs_cannot_have_one_port(runner):
    """Each of them serves a store there for its workers, and the second one finds the port taken."""
    need("torch")
    result = runner.taas_run(
        "--nproc-per-node", 2, "--store", "rank0", PROGRAMS / "spawn_workers.py", "own", free_port()
    )
    assert result.returncode == 1 and "EADDRINUSE" in result.stderr, f"{result.stdout}\n{result.stderr}"


def test_one_process_that_joins_a_group_alone(runner):
    need("torch")
    script = runner.folder / "alone.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "total = torch.tensor(7)\n"
        "dist.all_reduce(total)\n"
        "print(dist.get_world_size(), total.item())\n"
    )
    below = runner.taas_run(script)
    assert (below.returncode, below.stdout) == (0, "1 7\n"), below.stderr
