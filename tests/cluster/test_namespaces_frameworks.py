"""A program of Lightning that counts its machines itself, on that many."""

import importlib.util
import pathlib
import shutil

import pytest

from conftest import FULL, TAAS_RUN, give_up
from runs import assert_nothing_left

PROGRAM = pathlib.Path(__file__).parents[1] / "frameworks/programs/lightning_devices.py"


@pytest.mark.skipif(not FULL, reason="only in the full run (TAAS_FULL=1)")
def test_lightning_on_four_machines_of_eight_devices(cluster):
    """As a Trainer with devices=8 and num_nodes=4 has it. What torch alone imports is imported once on a machine."""
    if importlib.util.find_spec("lightning") is None:
        give_up("lightning is not installed (pip install -r scripts/requirements-frameworks.txt)")
    shutil.copy(PROGRAM, cluster.home / "train.py")
    done = cluster.login.run(
        TAAS_RUN, "--hosts", "n0,n1,n2,n3", "--gpus", 32, "--preload", "torch,torch._dynamo", "train.py", 8, 4
    )
    assert done.returncode == 0, done.stderr
    assert "32 ranks on 4 machines, 2 steps\n" in done.stdout
    assert_nothing_left(cluster, "taas-run", "train.py")
