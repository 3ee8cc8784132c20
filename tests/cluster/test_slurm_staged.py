"""Staged submissions to SLURM: GPUs are allocated once CPU machines prepared the loader, and nothing is left behind."""

import shutil
import signal

import pytest

from conftest import TAAS_RUN, some
from processes import wait_until
from runs import PROGRAMS
from slurm_daemons import CPU_NODES
from staged import FAILS, FLAGS, RANKS, Staged, path_with

# Which job is cancelled, and where taas-run is meanwhile.
WAYS_TO_CANCEL = (("CPU", "waiting"), ("GPU", "detached"), ("GPU", "waiting"), ("CPU", "detached"))


@pytest.fixture
def staged(slurm, records):
    return Staged(slurm, records)


def ends_with(run, code: int) -> str:
    """What the user read."""
    result = run.end()
    assert result.returncode == code, result.stderr
    assert "was not cancelled" not in result.stderr
    return result.stderr


# --- as it is meant ---


@pytest.mark.gate
def test_gpus_are_allocated_when_the_loader_is_prepared(slurm, staged, records):
    run = staged.start()
    cpus, gpus = staged.wait_for_preparation()
    assert staged.is_held(gpus)
    staged.assert_no_ranks()
    staged.prepare()
    staged.wait_for_batches()
    records.finish()
    told = ends_with(run, 0)
    assert (
        f"job {cpus} prepares data:train on CPU machines; job {gpus} has the GPU nodes, and is held until then" in told
    )
    assert f"job {gpus} is released" in told
    assert slurm.wait(gpus)["ExitCode"] == "0:0", slurm.report(gpus)
    staged.assert_ended(cpus, gpus)


def test_detached(slurm, staged, records):
    cpus, gpus = staged.detach()
    assert staged.wait_for_preparation() == (cpus, gpus)
    assert staged.is_held(gpus)
    staged.prepare()
    staged.wait_for_batches()
    records.finish()
    assert slurm.wait(cpus)["ExitCode"] == "0:0", slurm.report(cpus)
    assert slurm.wait(gpus)["ExitCode"] == "0:0", slurm.report(gpus)
    assert "done in" in slurm.output(cpus)
    staged.assert_ended(cpus, gpus)


def test_the_exit_code_of_a_rank_is_that_of_the_run_and_of_the_gpu_job(slurm, staged):
    run = staged.start(env={"RANK_EXITS": "42"})
    staged.prepare()
    ends_with(run, 42)
    cpus, gpus = staged.jobs()
    assert slurm.wait(gpus)["ExitCode"] == "42:0", slurm.report(gpus)
    staged.assert_ended(cpus, gpus)


def test_the_user_may_release_the_gpus_before(slurm, staged, records):
    run = staged.start()
    cpus, gpus = staged.wait_for_preparation()
    slurm.cluster.login.check("scontrol", "release", gpus)
    slurm.wait_for(gpus, {"RUNNING"})
    wait_until(lambda: slurm.processes(gpus), "its nodes are there")
    staged.assert_no_ranks()
    staged.prepare()
    staged.wait_for_batches()
    records.finish()
    assert "could not be released" not in ends_with(run, 0)
    staged.assert_ended(cpus, gpus)


def test_ranks_of_torch_take_batches_that_were_prepared(slurm, tmp_path):
    """Prepared on the CPU machine, and made nowhere else."""
    pytest.importorskip("torch")
    hosts = tmp_path / "hosts"
    hosts.mkdir()
    for name in ("prepared_data.py", "prepared_rank.py"):
        shutil.copy(PROGRAMS / name, tmp_path)
    smaller = ("--gpus", 1, "--cpus", 1)  # each process of torch takes its time
    result = slurm.cluster.login.run(
        TAAS_RUN,
        *FLAGS[:-1],
        "prepared_data:loader",
        *smaller,
        "prepared_rank.py",
        cwd=tmp_path,
        env={"HOSTS": str(hosts)},
    )
    assert result.returncode == 0, result.stderr
    assert "prepared prepared_data:loader: 8 batches" in result.stderr, result.stderr
    assert "made again" not in result.stderr, result.stderr
    assert "sum 2016" in result.stdout
    (host,) = hosts.iterdir()
    assert host.name in CPU_NODES


# --- what cannot begin ---


def test_a_gpu_job_that_slurm_refuses(staged):
    told = ends_with(staged.start("--partition", "nowhere"), 2)
    assert "the job of the GPU nodes was refused by SLURM" in told, told
    assert staged.all_jobs() == {}


def test_a_cpu_job_that_slurm_refuses_cancels_the_gpu_job(slurm, staged):
    told = ends_with(staged.start("--data-partition", "nowhere"), 2)
    assert "the job of the CPU machines was refused by SLURM" in told, told
    (gpus,) = staged.all_jobs()
    assert slurm.wait(gpus)["JobState"] == "CANCELLED"
    staged.assert_ended(gpus)


def test_a_loader_that_cannot_be_loaded_cancels_the_gpu_job(slurm, staged):
    told = ends_with(staged.start(env={"PREPARE": "fails"}), 2)
    assert "--loader data:train: no such loader" in told, told
    cpus, gpus = staged.jobs()
    assert slurm.job(gpus)["JobState"] == "CANCELLED"
    staged.assert_ended(cpus, gpus)


def test_a_release_that_fails_is_tried_again(slurm, staged, records, tmp_path):
    run = staged.start(env={"PATH": path_with("scontrol", FAILS, tmp_path / "failing")})
    cpus, gpus = staged.wait_for_preparation()
    staged.prepare()
    staged.wait_for_batches()
    records.finish()
    told = ends_with(run, 0)
    assert f"job {gpus} could not be released: Unable to contact slurm controller; this is tried again" in told, told
    staged.assert_ended(cpus, gpus)


# --- what ends it ---


def test_an_interrupt_while_the_loader_is_prepared(slurm, staged):
    run = staged.start()
    cpus, gpus = staged.wait_for_preparation()
    run.send_signal(signal.SIGINT)
    ends_with(run, 128 + signal.SIGINT)
    assert slurm.job(gpus)["JobState"] == "CANCELLED"
    staged.assert_no_ranks()
    staged.assert_ended(cpus, gpus)


def test_an_interrupt_while_the_jobs_are_submitted(staged, tmp_path):
    run = staged.start(env={"PATH": path_with("sbatch", "kill -INT $PPID", tmp_path / "interrupting")})
    ends_with(run, 128 + signal.SIGINT)
    staged.assert_ended(*staged.jobs())


def test_an_interrupt_while_the_cpu_machines_are_waited_for(slurm, records):
    holder = slurm.sbatch("#!/bin/sh\nsleep 1000\n", "-N2", "--exclusive", "--partition=cpu")
    slurm.wait_for(holder, {"RUNNING"})
    staged = Staged(slurm, records)
    run = staged.start()
    cpus, gpus = staged.jobs()
    run.send_signal(signal.SIGINT)
    ends_with(run, 128 + signal.SIGINT)
    slurm.scancel(holder)
    staged.assert_ended(cpus, gpus)


@pytest.mark.parametrize("which, way", some(WAYS_TO_CANCEL, 2))
def test_cancelling_one_job_while_the_loader_is_prepared_ends_both(slurm, staged, which, way):
    run = staged.start() if way == "waiting" else staged.detach() and None
    cpus, gpus = staged.wait_for_preparation()
    slurm.scancel(cpus if which == "CPU" else gpus)
    assert slurm.wait(gpus)["JobState"] == "CANCELLED"
    staged.assert_no_ranks()
    staged.assert_ended(cpus, gpus)
    told = ends_with(run, 2) if run else slurm.output(cpus)
    assert "is over (CANCELLED)" in told or (which, way) == ("CPU", "detached"), told


@pytest.mark.parametrize("which, way", some(WAYS_TO_CANCEL, 2))
def test_cancelling_one_job_while_ranks_run_ends_both(slurm, staged, which, way):
    run = staged.start() if way == "waiting" else staged.detach() and None
    cpus, gpus = staged.wait_for_preparation()
    staged.prepare()
    staged.wait_for_batches()
    slurm.scancel(cpus if which == "CPU" else gpus)
    if run:
        ends_with(run, 128 + signal.SIGTERM)
    staged.assert_ended(cpus, gpus)


def test_a_killed_launcher_leaves_a_held_job_that_says_why(slurm, staged):
    run = staged.start()
    cpus, gpus = staged.wait_for_preparation()
    slurm.cluster.login.kill_all("taas-run")
    run.end()
    slurm.wait(cpus)
    assert staged.is_held(gpus)
    assert "held by taas-run until CPU machines have prepared data:train" in slurm.report(gpus)
    slurm.scancel(gpus)
    staged.assert_ended(cpus, gpus)


# --- what it recovers from ---


def test_a_cpu_machine_that_is_lost_leaves_the_others(slurm, staged, records):
    run = staged.start()
    cpus, gpus = staged.wait_for_preparation()
    slurm.cluster["c1"].kill_all("--as-staged-node", "taas.worker")  # on c0 there is the job's script as well
    staged.prepare()
    wait_until(lambda: all(staged.hosts_of(rank) == ["None", "c0"] for rank in range(RANKS)), "c1 is missing")
    records.finish()
    assert "CPU machine c1 was lost" in ends_with(run, 0)
    staged.assert_ended(cpus, gpus)


def test_cpu_machines_that_slurm_requeues_prepare_again(slurm, staged, records):
    run = staged.start()
    cpus, gpus = staged.wait_for_preparation()
    slurm.cluster.login.check("scontrol", "requeue", cpus)
    slurm.wait_for_requeue(cpus)
    for path in records.folder.glob("preparing-*"):
        path.unlink()
    staged.wait_for_preparation()
    assert staged.is_held(gpus)
    staged.prepare()
    staged.wait_for_batches()
    records.finish()
    ends_with(run, 0)
    staged.assert_ended(cpus, gpus)
