"""A cell whose ranks are on other machines: here two agents that something in place of ssh starts on this one."""

import os
import subprocess
import sys

import pytest
from taas.notebook.options import parse
from taas.notebook.plan import over_several_machines, plan_of
from taas.notebook.pragma import Head

HERE = os.uname().nodename
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
exec sh -c "$3"
"""


def test_a_cell_over_two_machines(kernel, project, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o700)
    kernel.run("import torch, os\nweights = torch.ones(2000)\ndef scaled(n):\n    return weights * n").check()
    done = kernel.run(f"""%%taas --nnodes 2 --nproc-per-node 1 --hosts one,two --interface lo --ssh {ssh} --pull total
total = scaled(2).sum()
print("node", os.environ["NODE_RANK"])
display({{"text/plain": "in place"}}, raw=True)
print("after")
""").check()
    assert done.stream() == "node 0\nafter\n"
    assert "2 ranks on 2 nodes" in done.stream("stderr")
    assert "in place" in [output["data"]["text/plain"] for output in done.of("display_data")]
    assert kernel.run("total.item()").check().result == "4000.0"
    assert not any((project / "taas-runs" / "cells").iterdir()), "the cell's files go with the cell"


def test_cpu_machines_find_the_cell_as_well(kernel, project, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o700)
    kernel.run("import os").check()
    done = kernel.run(f"%%taas --gpus 2 --data-hosts one --ssh {ssh}\nprint(os.environ['TAAS_CELL'])").check()
    assert done.stream().startswith(str(project / "taas-runs" / "cells"))


def test_a_machine_that_does_not_see_the_cell_says_so_in_one_line(tmp_path):
    command = [sys.executable, "-m", "taas.notebook.rank", str(tmp_path / "elsewhere")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{HERE} does not see the cell's folder {tmp_path}/elsewhere: start the kernel in a folder")


@pytest.fixture
def allocation(monkeypatch):
    """Makes this process one within a job of SLURM on these nodes."""
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)

    def make(*nodes):
        monkeypatch.setenv("SLURM_JOB_ID", "5")
        monkeypatch.setenv("SLURM_JOB_NODELIST", ",".join(nodes))
        monkeypatch.setenv("SLURM_TASKS_PER_NODE", f"1(x{len(nodes)})")

    return make


@pytest.mark.parametrize(
    "nodes, line, several",
    [
        ((), "--gpus 2", False),
        ((), "--gpus 2 --cpus 1", False),
        ((), "--gpus 2 --cpus 1 --data-hosts one", True),
        ((), "--gpus 2 --hosts one,two", True),
        ((), "--gpus 2 --slurm", True),
        ((), "--gpus 2 --rdzv-endpoint localhost:29500", False),
        ((HERE, "other"), "--gpus 2 --nnodes 2", True),
        ((HERE,), "--gpus 2", False),
        (("other",), "--gpus 2", True),
        ((HERE, "other"), "--gpus 2 --nnodes 1 --spares 1", True),
    ],
)
def test_where_a_cell_runs_is_known_before(allocation, nodes, line, several):
    if nodes:
        allocation(*nodes)
    assert over_several_machines(plan_of(parse(line, Head(None, None)))) == several
