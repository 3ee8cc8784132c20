"""A staged submission: a job of CPU machines prepares the loader, and only then is the job of the GPU nodes released."""

import re
import signal

import pytest

from conftest import TAAS_RUN
from data_records import Seen
from processes import wait_until
from runs import assert_nothing_left

STAGED = ("--slurm", "--slurm-staged", "--data-partition", "cpu", "--gpus", "4", "--gpus-per-node", "2", "--cpus", "2",
          "--data-cores", "1", "--loader", "data:train")


@pytest.fixture
def seen(records):
    return Seen(records)


class Staged:
    """A staged submission of programs/data_program.py, whose workers prepare when they are told to."""

    def __init__(self, slurm, records, seen):
        self.slurm, self.records, self.seen = slurm, records, seen
        self.first = {int(job) for job in slurm.jobs()}

    def start(self, *flags, prepare="when told"):
        return self.slurm.cluster.login.start(TAAS_RUN, *STAGED, *flags, *self.seen.command, env={"PREPARE": prepare})


def assert_sound(slurm):
    slurm.wait_until_idle()
    assert slurm.drained() == ""
    assert_nothing_left(slurm.cluster)


def held_job(slurm, run):
    """The number of the job that the user is told of."""
    line = run.stderr.readline()
    return int(re.search(r"job (\d+)", line).group(1)), line


def test_gpus_are_allocated_when_the_loader_is_prepared(slurm, seen, records):
    run = slurm.cluster.login.start(TAAS_RUN, *STAGED, *seen.command, env={"PREPARE": "when told"})
    records.wait_for("preparing-*", 2)
    held = [job for job in slurm.cluster.login.check("squeue", "-h", "-t", "PD", "-o", "%i %r").splitlines()]
    assert len(held) == 1 and held[0].endswith("JobHeldUser"), held
    job = int(held[0].split()[0])
    assert records.names("seen-*") == []
    (records.folder / "prepare").touch()
    seen.wait_for_hosts(["c0", "c1"], ranks=4)
    records.finish()
    result = run.end()
    assert result.returncode == 0, result.stderr
    assert slurm.wait(job)["ExitCode"] == "0:0", slurm.report(job)
    print(result.stdout, result.stderr)
    assert_sound(slurm)
