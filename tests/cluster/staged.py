"""A staged submission of programs/data_program.py, and what SLURM says of its two jobs."""

import os
import pathlib
import shlex
import shutil

from conftest import TAAS_RUN, assert_sound
from data_records import Seen
from processes import wait_until

FLAGS = (
    "--slurm",
    "--slurm-staged",
    "--data-partition",
    "cpu",
    "--gpus",
    "2",
    "--gpus-per-node",
    "1",
    "--cpus",
    "2",
    "--data-cores",
    "1",
    "--loader",
    "data:train",
)
RANKS = 2


class Staged:
    """Data workers prepare the loader when the file `prepare` is there, and ranks end when `finish` is."""

    def __init__(self, slurm, records):
        self.slurm, self.records, self.seen = slurm, records, Seen(records)
        self.before = set(self._jobs())

    def start(self, *flags, env=None, **options):
        """taas-run on the login node."""
        return self.slurm.cluster.login.start(
            *self.command(*flags), env={"PREPARE": "when told", **(env or {})}, **options
        )

    def detach(self, *flags) -> tuple:
        """The numbers of both jobs: the one that prepares, and the held one."""
        run = self.start("--detach", *flags).end()
        assert run.returncode == 0, run.stderr
        return tuple(map(int, run.stdout.split()))

    def command(self, *flags) -> list:
        return [*self.seen.environment, TAAS_RUN, *FLAGS, *flags, *self.seen.command]

    def prepare(self):
        (self.records.folder / "prepare").touch()

    def wait_for_preparation(self) -> tuple:
        """Until both CPU machines are at it; returns jobs()."""
        self.records.wait_for("preparing-*", 2)
        return self.jobs()

    def wait_for_batches(self):
        """Until each rank is served by both CPU machines."""
        self.seen.wait_for_hosts(["c0", "c1"], ranks=RANKS)

    def hosts_of(self, rank: int) -> list:
        """Of the data workers that a rank knows; "None" for one that has left."""
        return sorted(str(entry and entry[0]) for entry in self.seen.of(rank) or [])

    def jobs(self) -> tuple:
        """The numbers of the CPU machines' job and of the GPU nodes'."""
        wait_until(lambda: {"cpu", "main"} <= set(self.all_jobs().values()), "both jobs are submitted")
        of = {partition: job for job, partition in self.all_jobs().items()}
        return of["cpu"], of["main"]

    def all_jobs(self) -> dict:
        """Number → partition."""
        return {job: partition for job, partition in self._jobs().items() if job not in self.before}

    def is_held(self, job: int) -> bool:
        told = self.slurm.job(job)
        return (told["JobState"], told["Reason"]) == ("PENDING", "JobHeldUser")

    def assert_ended(self, *jobs):
        for job in jobs:
            self.slurm.wait(job)
        assert_sound(self.slurm, *jobs)

    def assert_no_ranks(self):
        assert self.records.names("seen-*") == []

    def _jobs(self) -> dict:
        lines = self.slurm.cluster.login.check("squeue", "-h", "--states=all", "-o", "%A %P").splitlines()
        return {int(job): partition for job, partition in map(str.split, lines)}


FAILS = "echo Unable to contact slurm controller >&2; exit 1"  # as where slurmctld is away


def path_with(command: str, first_does: str, folder: pathlib.Path) -> str:
    """A PATH in which the command does something else when it is called for the first time."""
    folder.mkdir()
    file = folder / command
    file.write_text(f'#!/bin/sh\nrm {shlex.quote(str(file))}\n{first_does}\nexec {shutil.which(command)} "$@"\n')
    file.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
