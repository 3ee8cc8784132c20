"""CPU machines in SLURM: the second component of a heterogeneous job."""

import shlex

import pytest

from conftest import TAAS_RUN, assert_sound
from data_records import Seen

SMALL = ("--gpus", "4", "--gpus-per-node", "2", "--cpus", "2", "--data-cores", "1")


@pytest.fixture
def seen(records):
    return Seen(records)


@pytest.mark.gate
def test_the_second_component_makes_batches(slurm, seen, records):
    command = shlex.join(map(str, [*seen.environment, TAAS_RUN, *SMALL, *seen.command]))
    job = slurm.sbatch(f"#!/bin/sh\nexec {command}\n", "-N2", "--gpus-per-node=2", ":", "-p", "cpu", "-N2")
    seen.wait_for_hosts(["c0", "c1"], ranks=4)
    records.finish()
    slurm.wait_until_idle()
    assert "done in" in slurm.output(job), slurm.report(job)
    assert_sound(slurm, job)


def test_a_job_is_submitted_with_both_components(slurm, seen, records):
    run = slurm.cluster.login.start(
        *seen.environment, TAAS_RUN, "--slurm", "--data-partition", "cpu", *SMALL, *seen.command
    )
    seen.wait_for_hosts(["c0", "c1"], ranks=4)
    records.finish()
    result = run.end()
    assert result.returncode == 0, result.stderr
    assert_sound(slurm)


def test_without_a_second_component_a_job_is_refused(slurm, seen):
    command = shlex.join(map(str, [*seen.environment, TAAS_RUN, *SMALL, *seen.command]))
    job = slurm.sbatch(f"#!/bin/sh\nexec {command}\n", "-N2", "--gpus-per-node=2")
    assert slurm.wait(job)["ExitCode"] == "2:0", slurm.report(job)
    assert "--cpus 2: a job of SLURM needs a second component of CPU nodes" in slurm.output(job)
