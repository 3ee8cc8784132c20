"""The tests' own SLURM itself: what the other tests build on does what it says."""

import shlex

from conftest import TAAS_RUN
from processes import wait_until
from slurm_daemons import GPU_NODES


def test_four_nodes_with_eight_gpus_each(slurm):
    show = "echo $(hostname) $SLURM_GPUS_ON_NODE $SLURM_NODEID"
    result = slurm.srun("-N4", "--ntasks-per-node=1", "--gpus-per-node=8", "sh", "-c", show)
    assert sorted(result.stdout.splitlines()) == [f"g{i} 8 {i}" for i in range(4)], result.stderr


def test_gpus_are_counted(slurm):
    first = slurm.sbatch("#!/bin/sh\nsleep 60\n", "-N4", "--gpus-per-node=8")
    slurm.wait_for(first, {"RUNNING"})
    second = slurm.sbatch("#!/bin/sh\ntrue\n", "-N1", "--gpus-per-node=1")
    wait_until(lambda: slurm.job(second)["Reason"] in ("Resources", "Priority"), "the second one waits for GPUs")


def test_thirty_two_tasks_fit(slurm):
    result = slurm.srun("-N4", "--ntasks-per-node=8", "hostname")
    assert sorted(result.stdout.split()) == sorted(GPU_NODES * 8), result.stderr


def test_a_heterogeneous_job(slurm):
    result = slurm.srun("-N2", "--gpus-per-node=8", "hostname", ":", "-p", "cpu", "-N2", "hostname")
    assert sorted(result.stdout.split()) == ["c0", "c1", "g0", "g1"], result.stderr


def test_scancel_and_what_it_leaves(slurm):
    job = slurm.sbatch("#!/bin/sh\nsrun sleep 1000\n", "-N4")
    slurm.wait_for(job, {"RUNNING"})
    wait_until(lambda: len(slurm.processes(job)) >= 5, "a script and four tasks")
    slurm.scancel(job)
    assert slurm.wait(job)["JobState"] == "CANCELLED"
    slurm.wait_until_idle()
    assert not slurm.processes(job)


def test_preemption_requeues(slurm):
    """The second start does not end by itself.

    From 24.05 on SLURM would requeue it again, since the first one outlasted its grace time (SLURM's ticket 25682).
    """
    job = slurm.sbatch(
        "#!/bin/sh\n[ -n \"$SLURM_RESTART_COUNT\" ] || trap '' TERM\necho start ${SLURM_RESTART_COUNT:-0}\n"
        "sleep 1000\n",
        "-N4",
        "--gpus-per-node=8",
        "--requeue",
    )
    slurm.wait_for(job, {"RUNNING"})
    urgent = slurm.sbatch("#!/bin/sh\necho urgent\n", "-N4", "--gpus-per-node=8", "--partition=urgent")
    assert slurm.wait(urgent)["JobState"] == "COMPLETED"
    slurm.wait_for_requeue(job)
    assert slurm.wait_for(job, {"RUNNING"})["Restarts"] == "1", slurm.report(job)
    wait_until(lambda: slurm.output(job).splitlines()[-1] == "start 1", "the script runs again")
    slurm.scancel(job)
    assert slurm.wait(job)["JobState"] == "CANCELLED"


def test_taas_run_of_one_machine_inside_an_allocation(slurm, ranks):
    command = shlex.join([TAAS_RUN, "--nproc-per-node", "8", *ranks("*=print:here")])
    job = slurm.sbatch(f"#!/bin/sh\n{command}\n", "-N1", "--gpus-per-node=8")
    ended = slurm.wait(job)
    assert ended["ExitCode"] == "0:0", slurm.report(job)
    assert slurm.output(job).count("here") >= 1
    assert not slurm.processes(job)
