"""Cells of a notebook whose ranks are on two machines, and its kernel on the login machine: no memory is shared."""

import importlib.util
import pathlib
import sys

import pytest

from conftest import TAAS_RUN, give_up
from runs import assert_nothing_left

SHAPES = '["g2.8"]\ngpus = 8\noptions = ["--hosts", "n0,n1"]\n'
DEFINE = "%load_ext taas\nimport torch\nweights = torch.ones(2000)\ndef scaled(number):\n    return weights * number"
PACKAGE = pathlib.Path(TAAS_RUN).parent.parent / "python"  # of the same build
CELL = """#!g2.8
#pragma taas --gpus 16 --pull hosts
import os
import torch.distributed as dist
dist.init_process_group(backend="gloo", init_method="env://")
total = scaled(dist.get_rank())
dist.all_reduce(total)
hosts = [None] * dist.get_world_size()
dist.all_gather_object(hosts, os.uname().nodename)
print("total", total.sum().item(), "on", os.environ["GROUP_WORLD_SIZE"], "machines")
dist.destroy_process_group()
"""


@pytest.fixture
def run_cells(cluster):
    """Runs the cells of a notebook on the login machine; returns what each has printed."""
    if missing := [name for name in ("torch", "nbclient", "ipykernel") if importlib.util.find_spec(name) is None]:
        give_up(f"not installed: {', '.join(missing)} (pip install -r scripts/requirements-notebook.txt)")
    import nbformat

    path = cluster.home / "training.ipynb"

    def run(*cells: str) -> list[str]:
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
        execute = "import sys; from nbclient.cli import main; sys.exit(main(['--inplace', 'training.ipynb']))"
        done = cluster.login.run(sys.executable, "-c", execute, env={"TAAS_RUN": TAAS_RUN, "PYTHONPATH": str(PACKAGE)})
        assert done.returncode == 0, done.stderr
        texts = [
            [output.get("text", "") for output in cell.outputs if output.get("name") == "stdout"]
            for cell in nbformat.read(path, as_version=4).cells
        ]
        return ["".join(text) for text in texts]

    return run


def test_a_cell_of_sixteen_ranks_on_two_machines(cluster, run_cells):
    (cluster.home / "taas-shapes.toml").write_text(SHAPES)
    *_, trained, pulled = run_cells(DEFINE, CELL, "print(hosts)")
    assert trained == f"total {2000.0 * sum(range(16))} on 2 machines\n"
    assert pulled == f"{['n0'] * 8 + ['n1'] * 8}\n"
    assert not any((cluster.home / "taas-runs" / "cells").iterdir()), "the cell's files go with the cell"
    assert_nothing_left(cluster, "taas-run", "taas.notebook")
