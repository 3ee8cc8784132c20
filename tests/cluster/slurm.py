"""A SLURM of the tests' own: slurmctld and munged on the login node, one slurmd on each node of a Cluster.

g0..g3 have 8 counted GPUs each (partition `main`, and `urgent` that preempts it), c0 and c1 have none (`cpu`). h0
has four (`uneven`, with g0).
"""

import pathlib
import shlex
import shutil

from namespaces import Cluster
from processes import wait_until
from slurm_daemons import CPU_NODES, GPU_NODES, SMALL_NODE, start, write_files

ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "PREEMPTED", "NODE_FAIL"}


class Slurm:
    def __init__(self):
        self.cluster = Cluster(*GPU_NODES, *CPU_NODES, SMALL_NODE)
        try:
            self.folder = self.cluster.folder / "slurm"
            write_files(self.folder)
            start(self.cluster, self.folder)
            self.wait_until_idle()
        except BaseException:
            self.cluster.stop()
            raise

    # --- what users do, on the login node ---

    def sbatch(self, script: str, *options) -> int:
        """Submits a job script (its text), and returns the job's id."""
        path = self.cluster.home / f"job-{len(list(self.cluster.home.glob('job-*')))}.sh"
        path.write_text(script)
        return int(self.cluster.login.check("sbatch", "--parsable", *options, path).strip())

    def scancel(self, job: int, *options):
        self.cluster.login.check("scancel", *options, job)

    def wait_for_requeue(self, job: int):
        """Waits until the job is in the queue again, and lets it start soon: SLURM itself would wait two minutes.

        Not at once: in the second in which the first start was revoked the nodes refuse it ("Job credential revoked").
        """
        self.wait_for(job, {"PENDING"})
        self.cluster.login.check("scontrol", "update", f"JobId={job}", "StartTime=now+2")

    # --- what tests look at ---

    def job(self, job: int) -> dict:
        """What SLURM knows of a job: JobState, ExitCode, Restarts, NodeList, …"""
        text = self.cluster.login.check("scontrol", "show", "job", "--oneliner", job)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def state(self, job: int) -> str:
        return self.job(job)["JobState"]

    def wait_for(self, job: int, states) -> dict:
        """Waits until the job is in one of the states; fails with all that SLURM has to say about it."""
        try:
            wait_until(lambda: self.state(job) in states, f"job {job} is in {states}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.report(job)}") from None
        return self.job(job)

    def wait(self, job: int) -> dict:
        """Waits for the job's end."""
        return self.wait_for(job, ENDED)

    def output(self, job: int) -> str:
        return (self.cluster.home / f"slurm-{job}.out").read_text()

    def processes(self, job: int) -> dict:
        """Pid → command line of what carries the job's id in its environment and is alive, on all machines."""
        mark = f"SLURM_JOB_ID={job}".encode()
        lines = {pid: line for node in self.cluster.processes().values() for pid, line in node.items()}
        return {pid: line for pid, line in lines.items() if mark in environment_of(pid).split(b"\0")}

    def drained(self) -> str:
        """The nodes that cannot take a job any more, with SLURM's reasons; empty when all is well."""
        lines = self.cluster.login.check("sinfo", "-h", "-N", "-o", "%N %t %E").splitlines()
        sound = ("idle", "mix", "alloc", "comp")
        return "\n".join(line for line in lines if not line.split()[1].startswith(sound) or "*" in line.split()[1])

    def report(self, job: int) -> str:
        commands = (["squeue"], ["sinfo", "-N", "-l"], ["sinfo", "-R"], ["scontrol", "show", "job", job])
        answers = [f"$ {' '.join(map(str, c))}\n{self.cluster.login.run(*c).stdout}" for c in commands]
        return "\n".join([*answers, self._tail("slurmctld.log"), f"output of the job: {self._output_if_any(job)}"])

    def reset(self):
        """Ends all jobs, and waits until every node is idle again."""
        self.cluster.login.check("scancel", "--full", "--signal=KILL", "--user=root")
        self.cluster.login.check("scancel", "--user=root")
        self.wait_until_idle()

    def wait_until_idle(self):
        states = lambda: set(self.cluster.login.check("sinfo", "-h", "-N", "-o", "%t").split())
        try:
            wait_until(lambda: states() == {"idle"}, "all nodes are idle")
        except AssertionError as error:
            raise AssertionError(
                f"{error}\n{self.cluster.login.run('sinfo', '-N', '-l').stdout}{self._tail('slurmctld.log')}"
            ) from None

    def stop(self):
        self.cluster.stop()

    def _tail(self, name: str) -> str:
        lines = (self.folder / name).read_text(errors="replace").splitlines()[-30:]
        return f"--- {name}\n" + "\n".join(lines)

    def _output_if_any(self, job: int) -> str:
        try:
            return self.output(job)
        except FileNotFoundError:
            return "none"


def environment_of(pid: int) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def late_signals(folder: pathlib.Path) -> str:
    """A line for a script: SLURM gets only now to the launcher and the scontrol that it started, as on a busy machine.

    It signals the processes of a job one by one.
    """
    folder.mkdir()
    scontrol = folder / "scontrol"
    scontrol.write_text(f'#!/bin/sh\nkill -TERM $PPID $$\nexec {shutil.which("scontrol")} "$@"\n')
    scontrol.chmod(0o755)
    return f"PATH={shlex.quote(str(folder))}:$PATH\n"
