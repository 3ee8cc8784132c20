"""A process group that is made again in one run: it never meets addresses of the last one, whoever serves the store."""

import sys

import pytest
from conftest import need

GROUPS = 20
PROGRAM = f"""
import os, torch, torch.distributed as dist
for job in range({GROUPS}):
    dist.init_process_group("gloo")
    total = torch.tensor(dist.get_rank() + job)
    dist.all_reduce(total)
    assert total.item() == sum(range(4)) + 4 * job, total
    dist.destroy_process_group()
open(os.environ["REPORTS"] + "/" + os.environ["RANK"], "w").close()
os._exit(0)  # a thread of torch's gloo can outlive Python's end
"""
ONE_JOB = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor(1)
dist.all_reduce(total)
assert total.item() == 2, total
dist.destroy_process_group()
os._exit(0)
"""


def count_ended_well(runner, result):
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    return len(list(runner.reports.iterdir()))


@pytest.mark.parametrize("preload", ["auto", "none"])
@pytest.mark.parametrize("store", ["agent", "rank0"])
def test_twenty_groups_one_after_another(runner, store, preload):
    need("torch")
    program = runner.folder / "jobs.py"
    program.write_text(PROGRAM)
    result = runner.taas_run("--nproc-per-node", 4, "--store", store, "--preload", preload, program)
    assert count_ended_well(runner, result) == 4
    journal = (runner.folder / "taas-runs/latest/journal.jsonl").read_text()
    assert journal.count('"rank_joined"') == (4 if store == "agent" else 0), "the first group has torch's own keys"


def test_in_a_program_that_a_shell_script_starts(runner):
    need("torch")
    (runner.folder / "jobs.py").write_text(PROGRAM)
    script = runner.folder / "jobs.sh"
    script.write_text('#!/bin/bash\npython -u jobs.py\ncode=$?\nexit "$code"\n')
    script.chmod(0o755)
    assert count_ended_well(runner, runner.taas_run("--nproc-per-node", 4, script)) == 4


def test_programs_that_a_rank_runs_one_after_another(runner):
    """Each starts to count anew, and the store does not."""
    need("torch")
    job = runner.folder / "job.py"
    job.write_text(ONE_JOB)
    sweep = runner.folder / "sweep.py"
    sweep.write_text(
        "import subprocess, sys\n"
        f"for job in range(4):\n    subprocess.run([sys.executable, {str(job)!r}], check=True)\n"
    )
    result = runner.taas_run("--nproc-per-node", 2, sweep)
    assert result.returncode == 0, result.stderr


def test_a_group_of_fewer_ranks_before_that_of_all(runner):
    need("torch")
    program = runner.folder / "fewer.py"
    program.write_text(
        "import os, torch, torch.distributed as dist\n"
        "rank = int(os.environ['RANK'])\n"
        "for ranks in (2, 3, 2, 3):\n"
        "    if rank >= ranks:\n"
        "        continue\n"
        "    dist.init_process_group('gloo', rank=rank, world_size=ranks)\n"
        "    total = torch.tensor(1)\n"
        "    dist.all_reduce(total)\n"
        "    assert total.item() == ranks, total\n"
        "    dist.destroy_process_group()\n"
        "os._exit(0)\n"
    )
    result = runner.taas_run("--nproc-per-node", 3, program)
    assert result.returncode == 0, result.stderr


def test_a_failure_in_a_later_group_is_reported_as_one_in_the_first(runner):
    """torch puts the rank in front of each line once for each group."""
    need("torch")
    program = runner.folder / "fails.py"
    program.write_text(
        "import torch.distributed as dist\n"
        "for job in range(2):\n"
        "    dist.init_process_group('gloo')\n"
        "    dist.barrier()  # gloo's peers may still be connecting before it\n"
        "    dist.destroy_process_group()\n"
        "raise ValueError('bad shape')\n"
    )
    result = runner.taas_run("--nproc-per-node", 2, program)
    assert result.returncode == 1
    assert "raised ValueError: bad shape" in result.stderr, result.stderr


def test_torch_loads_what_a_rank_has_there_and_nobody_else(runner):
    need("torch")
    look = "import sys, torch; print('taas_rank' in sys.modules)"
    inside = runner.taas_run("--nproc-per-node", 2, sys.executable, "-c", look)
    assert inside.stdout.splitlines() == ["True"], inside.stderr
    assert runner.python("-c", look).stdout == "False\n"
