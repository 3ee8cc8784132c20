"""Frameworks that read SLURM's variables themselves, where a task is an agent and no rank: taas-run's word counts."""

import importlib.util
import json
import pathlib
import shlex

import pytest

from conftest import FULL, TAAS_RUN, give_up
from runs import assert_nothing_left

FRAMEWORKS = pathlib.Path(__file__).parents[1] / "frameworks" / "programs"
EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"
QUIET = {
    "CUDA_VISIBLE_DEVICES": "",
    "JAX_PLATFORMS": "cpu",
    "DS_ACCELERATOR": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "OMP_NUM_THREADS": "1",
}
full_only = pytest.mark.skipif(not FULL, reason="only in the full run (TAAS_FULL=1)")


def need(package: str):
    if importlib.util.find_spec(package) is None:
        give_up(f"{package} is not installed (pip install -r scripts/requirements-frameworks.txt)")


def told_by_ranks(slurm, folder: pathlib.Path, program: str, *options) -> list[dict]:
    """What four ranks on two nodes of a job report. The job's name is one that Lightning takes for a batch job."""
    reports = folder / "reports"
    reports.mkdir()
    variables = {**QUIET, "REPORTS": reports, "EXAMPLES": EXAMPLES}
    exports = "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in variables.items())
    command = shlex.join(map(str, [TAAS_RUN, *options, "--gpus", 4, "--gpus-per-node", 2, FRAMEWORKS / program]))
    job = slurm.sbatch(
        f"#!/bin/sh\n{exports}srun --ntasks-per-node=1 {command}\n", "-N2", "--gpus-per-node=8", "--job-name=train"
    )
    assert slurm.wait(job)["ExitCode"] == "0:0", slurm.report(job)
    assert_nothing_left(slurm.cluster)
    return [json.loads((reports / f"{rank}.json").read_text()) for rank in range(4)]


def test_lightning_in_a_job(slurm, tmp_path):
    need("lightning")
    told = told_by_ranks(slurm, tmp_path, "lightning_rank.py")
    assert {each["environment"] for each in told} == {"TorchElasticEnvironment"}
    assert [each["at_import"] for each in told] == [each["global_rank"] for each in told] == [0, 1, 2, 3]
    assert [(each["node_rank"], each["local_rank"]) for each in told] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len({each["parameters"] for each in told}) == 1


@full_only
def test_deepspeed_in_a_job(slurm, tmp_path):
    need("deepspeed")
    told = told_by_ranks(slurm, tmp_path, "deepspeed_rank.py")
    assert [(each["rank"], each["local_rank"], each["world"]) for each in told] == [
        (0, 0, 4),
        (1, 1, 4),
        (2, 0, 4),
        (3, 1, 4),
    ]


@full_only
def test_jax_in_a_job(slurm, tmp_path):
    """JAX's own detection would make one process of all ranks of a task."""
    need("jax")
    told = told_by_ranks(slurm, tmp_path, "jax_rank.py")
    assert [(each["processes"], each["index"], each["total"]) for each in told] == [
        (4, rank, 10.0) for rank in range(4)
    ]


@full_only
def test_tensorflow_over_two_machines(slurm, tmp_path):
    """TF_CONFIG names addresses of both machines, and ports that each of them holds."""
    need("tensorflow")
    told = told_by_ranks(slurm, tmp_path, "tensorflow_rank.py", "--framework", "tf")
    assert [(each["index"], each["replicas"], each["weight"]) for each in told] == [
        (rank, 4, 0.75) for rank in range(4)
    ]
    hosts = [worker.rsplit(":", 1)[0] for worker in told[0]["workers"]]
    assert hosts[0] == hosts[1] != hosts[2] == hosts[3]
