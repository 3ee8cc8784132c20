"""taas-run in SLURM: with srun in front, in a job script, submitted, and stopped in all of SLURM's ways."""

import os
import pathlib
import re
import shlex
import signal
import time

import pytest

from conftest import TAAS_RUN, assert_sound, some
from processes import wait_until
from runs import Records
from slurm import late_signals
from slurm_daemons import GPU_NODES, SMALL_NODE

WHOLE = ("-N4", "--gpus-per-node=8")
ONE = ("-N1", "--gpus-per-node=8")
RANKS = 32
SMALL = ("--gpus", "8", "--gpus-per-node", "2")  # ranks that are Python programs: eight are enough

# In front of taas-run: a step of agents that srun starts, or taas-run itself, which starts that step.
WAYS = {"srun": "srun --ntasks-per-node=1 ", "plain": "exec "}
both_ways = pytest.mark.parametrize("way", WAYS)


def script(way: str, *words, before: str = "") -> str:
    return f"#!/bin/sh\n{before}{WAYS[way]}{shlex.join(map(str, (TAAS_RUN, *words)))}\n"


@pytest.mark.parametrize(
    "front, options",
    [pytest.param("srun ", (), marks=pytest.mark.gate), ("srun ", ["--ntasks-per-node=8"]), ("", ())],
    ids=["srun", "a task a GPU", "plain"],
)
def test_thirty_two_ranks_in_a_job_script(slurm, records, front, options):
    command = shlex.join([TAAS_RUN, "--gpus", "32", *records.command("report_rank.py")])
    job = slurm.sbatch(f"#!/bin/sh\n{front}{command}\n", *WHOLE, *options)
    assert slurm.wait(job)["ExitCode"] == "0:0", slurm.report(job)
    told = records.environments()
    assert [t["hostname"] for t in told] == [name for name in GPU_NODES for _ in range(8)]
    assert [int(t["GROUP_RANK"]) for t in told] == [rank // 8 for rank in range(RANKS)]
    assert {t["WORLD_SIZE"] for t in told} == {"32"}
    assert_sound(slurm, job)


@pytest.mark.parametrize(
    "way, options",
    [
        ("srun", ("--gpus", "12")),
        pytest.param("plain", ("--gpus", "12"), marks=pytest.mark.gate),
        ("plain", ()),
        ("srun", ("--nnodes", "2", "--nproc-per-node", "gpu")),
    ],
)
def test_nodes_with_different_numbers_of_gpus(slurm, records, way, options):
    """Each has as many ranks as GPUs, so that LOCAL_RANK is a device everywhere."""
    job = slurm.sbatch(
        script(way, *options, *records.command("report_rank.py")), "--partition=uneven", "-N2", "--gpus=12"
    )
    assert slurm.wait(job)["ExitCode"] == "0:0", slurm.report(job)
    told = records.environments()
    assert [t["hostname"] for t in told] == ["g0"] * 8 + [SMALL_NODE] * 4, slurm.output(job)
    assert [int(t["LOCAL_RANK"]) for t in told] == [*range(8), *range(4)]
    assert [int(t["LOCAL_WORLD_SIZE"]) for t in told] == [8] * 8 + [4] * 4
    assert "12 ranks on 2 nodes" in slurm.output(job) and "(8 + 4: LOCAL_WORLD_SIZE differs)" in slurm.output(job)
    assert_sound(slurm, job)


@pytest.mark.gate
def test_variables_of_a_step_that_is_over_are_told(slurm, records):
    """A terminal's server outlives its job: the tasks of that step were waited for."""
    variables = records.folder / "variables"
    keep = f"export -p | grep SLURM >{shlex.quote(str(variables))}-$SLURM_PROCID"
    slurm.cluster.login.check("srun", "-N2", "--ntasks-per-node=1", "sh", "-c", keep)
    for task in range(2):
        stale = f'. {shlex.quote(str(variables))}-{task}; exec "$@"'
        result = slurm.cluster.login.run("sh", "-c", stale, "sh", TAAS_RUN, "--gpus", 16, "--no-python", "true")
        assert result.returncode == 2 and result.stderr.count("\n") == 1, result.stderr
        assert re.search(r"name step \d+\.0, which is over.*--standalone", result.stderr), result.stderr


@pytest.mark.gate
def test_the_shell_of_a_step_with_several_tasks_stands_for_all_of_them(slurm):
    typed = shlex.join([TAAS_RUN, "--gpus", "16", "--no-python", "true"]) + "; exit\n"
    shell = shlex.join(["srun", "--pty", "-N2", "-n4", "--gpus-per-node=8", "--overlap", "bash", "-i"])
    terminal = f"printf %s {shlex.quote(typed)} | script -qec {shlex.quote(shell)} /dev/null"
    result = slurm.cluster.login.run("sh", "-c", terminal)
    assert "stands for all tasks of step" in result.stdout and "done in" in result.stdout, result.stdout


@pytest.mark.parametrize("asked", [pytest.param("--gpus=12", marks=pytest.mark.gate), "--gres=gpu:4"])
def test_the_shell_of_salloc_learns_the_gpus_of_its_nodes(slurm, records, asked):
    result = slurm.cluster.login.run(
        "salloc", "--partition=uneven", "-N2", asked, TAAS_RUN, *records.command("report_rank.py")
    )
    assert result.returncode == 0, result.stderr
    sizes = [int(t["LOCAL_WORLD_SIZE"]) for t in records.environments()]
    assert sizes == ([8] * 8 + [4] * 4 if "12" in asked else [4] * 8), result.stderr


@pytest.mark.parametrize("way", ["srun", pytest.param("plain", marks=pytest.mark.gate)])
def test_the_exit_code_is_the_jobs(slurm, ranks, way):
    job = slurm.sbatch(script(way, *SMALL, *ranks("5=exit:42")), *WHOLE)
    assert slurm.wait(job)["ExitCode"] == "42:0", slurm.report(job)
    output = slurm.output(job)
    assert re.search(r"rank 5\b.*exited with code 42", output) and "g2" in output, output
    assert_sound(slurm, job)


@both_ways
def test_two_jobs_on_the_same_nodes_do_not_meet(slurm, records, tmp_path, way):
    both = [records, Records(tmp_path / "others")]
    jobs = [
        slurm.sbatch(
            script(way, "--gpus", "8", "--gpus-per-node", "2", *r.command("report_rank.py")), "-N4", "--gpus-per-node=4"
        )
        for r in both
    ]
    for job, told in zip(jobs, both):
        assert slurm.wait(job)["ExitCode"] == "0:0", slurm.report(job)
        assert len(told.environments()) == 8


def test_one_machine_inside_an_allocation(slurm, ranks):
    job = slurm.sbatch(script("plain", "--nproc-per-node", 8, *ranks("*=exit:0")), "-N1", "--gpus-per-node=8")
    assert slurm.wait(job)["ExitCode"] == "0:0", slurm.report(job)
    assert_sound(slurm, job)


# --- submitted from the login node ---


@pytest.mark.gate
def test_submission_waits_and_shows_the_output(slurm, ranks):
    result = slurm.cluster.login.run(TAAS_RUN, "--slurm", "--gpus", 32, *ranks("*=print:here"))
    assert result.returncode == 0, result.stderr
    assert "here" in result.stdout


@pytest.mark.gate
def test_submission_returns_the_exit_code(slurm, ranks):
    result = slurm.cluster.login.run(TAAS_RUN, "--slurm", "--gpus", 32, *ranks("17=exit:42"))
    assert result.returncode == 42, result.stderr


@pytest.mark.gate
def test_detached_submission_prints_the_jobs_number(slurm, records):
    number = slurm.cluster.login.check(
        TAAS_RUN,
        "--slurm",
        "--detach",
        "--partition",
        "urgent",
        "--time",
        "5",
        "--slurm-option",
        "job-name=mine",
        "--gpus",
        32,
        *records.command("report_rank.py"),
    )
    job = int(number)
    ended = slurm.wait(job)
    assert (ended["ExitCode"], ended["Partition"], ended["TimeLimit"]) == ("0:0", "urgent", "00:05:00")
    assert ended["JobName"] == "mine"
    assert len(records.environments()) == RANKS


def test_one_interrupt_ends_a_submitted_job_with_checkpoints(slurm, records):
    run = slurm.cluster.login.start(TAAS_RUN, "--slurm", *SMALL, *records.command("saving_rank.py"))
    records.wait_for("started-0-*", 8)
    run.send_signal(signal.SIGINT)
    result = run.end()
    assert result.returncode == 128 + signal.SIGINT, result.stderr
    assert len(records.names("saved-0-*-INT")) == 8, result.stderr
    assert_sound(slurm)


# --- stopped by SLURM: a checkpoint each time, and sound nodes ---


@pytest.mark.parametrize("way", ["srun", pytest.param("plain", marks=pytest.mark.gate)])
def test_scancel(slurm, records, way):
    job = slurm.sbatch(script(way, *SMALL, *records.command("saving_rank.py")), *WHOLE)
    records.wait_for("started-0-*", 8)
    slurm.scancel(job)
    assert slurm.wait(job)["JobState"] == "CANCELLED"
    assert_sound(slurm, job)
    assert len(records.names("saved-0-*-TERM")) == 8, slurm.report(job)


@both_ways
def test_scancel_of_ranks_that_do_not_want_to_end(slurm, ranks, barrier, way):
    job = slurm.sbatch(script(way, *SMALL, *ranks("*=stubborn")), *WHOLE)
    wait_until(lambda: len(list(barrier.glob("ready-0-?"))) == 8, "all ranks are up")
    slurm.scancel(job)
    assert slurm.wait(job)["JobState"] == "CANCELLED"
    assert_sound(slurm, job)


@pytest.mark.parametrize("way", some(["plain", "srun"]))
def test_scancel_of_a_training_leaves_a_checkpoint(slurm, tmp_path, way):
    """32 ranks of the training program, in the middle of an epoch."""
    if not (pathlib.Path(TAAS_RUN).parent / "train").exists():
        pytest.skip("the training program is not built")
    training = ["train", "--train-images", 16384, "--test-images", 64, "--batch-size", 2, "--threads", 1, "--epochs", 1]
    job = slurm.sbatch(script(way, "--gpus", 32, "--output", tmp_path / "runs", *training), *WHOLE)
    slurm.wait_for(job, ["RUNNING"])
    output = slurm.cluster.home / f"slurm-{job}.out"
    wait_until(lambda: output.exists() and "epoch 1/1 step" in output.read_text(), "the first steps are done")
    assert not list(tmp_path.glob("runs/*/output/*"))
    slurm.scancel(job)
    assert slurm.wait(job)["JobState"] == "CANCELLED"
    assert list(tmp_path.glob("runs/*/output/checkpoint.pt")), slurm.report(job)
    assert_sound(slurm, job)


@pytest.mark.parametrize(
    "way, option", some([("srun", "USR2@30"), ("srun", "USR1@30"), ("plain", "B:USR2@30"), ("plain", "USR2@30")])
)
def test_time_limit_with_a_signal_before(slurm, records, way, option):
    """SLURM counts in minutes, and looks every half minute: its signal may come a minute too early.

    The limit is set once all ranks can be told.
    """
    name = option.removeprefix("B:").removesuffix("@30")
    more = [] if name == "USR2" else ["--preempt-signal", name]
    job = slurm.sbatch(script(way, *more, *SMALL, *records.command("saving_rank.py")), *WHOLE, f"--signal={option}")
    records.wait_for("started-0-*", 8)
    slurm.cluster.login.check("scontrol", "update", f"JobId={job}", "TimeLimit=1")
    assert slurm.wait(job)["JobState"] == "TIMEOUT", slurm.report(job)
    assert_sound(slurm, job)
    assert len(records.names(f"saved-0-*-{name}")) == 8, "told before the end"
    assert len(records.names("asked-0-*")) == 8, "and by the file of TAAS_STOP_REQUESTED"
    assert len(records.names("saved-0-*-TERM")) == 8, "and stopped in the end"


@pytest.mark.parametrize(
    "way, size, nodes, whom",
    [("srun", SMALL, WHOLE, []), ("plain", SMALL, WHOLE, []), ("plain", ("--gpus", "8"), ONE, ["--full"])],
    ids=["srun", "plain", "one node"],
)
def test_ranks_that_do_not_handle_the_signal_live_and_the_others_get_it_once(slurm, records, way, size, nodes, whom):
    """SLURM signals every process of a step, and so does not leave it to the launcher; with SIGTERM likewise."""
    job = slurm.sbatch(script(way, "--preload", "none", *size, *records.command("counting_rank.py")), *nodes)
    records.wait_for("started-*", 8)
    slurm.cluster.login.check("scancel", *whom, "--signal=USR2", str(job))
    records.wait_for("told-*", 4)
    records.wait_for("asked-*", 8)
    slurm.scancel(job)
    assert slurm.wait(job)["JobState"] == "CANCELLED"
    told = {int(name.split("-")[1]): int(name.split("-")[2]) for name in records.names("counted-*")}
    assert told == {rank: 1 - rank % 2 for rank in range(8)}, slurm.report(job)
    assert len(records.names("saved-*")) == 8, slurm.report(job)
    assert "SIGUSR2: 4 of 8 ranks do not handle it" in slurm.output(job)
    assert_sound(slurm, job)


@pytest.mark.gate
def test_a_signal_to_the_script_alone_reaches_ranks_that_handle_it(slurm, records):
    """As --signal=B:USR2 has it."""
    job = slurm.sbatch(script("plain", "--preload", "none", *SMALL, *records.command("counting_rank.py")), *WHOLE)
    records.wait_for("started-*", 8)
    slurm.cluster.login.check("scancel", "--batch", "--signal=USR2", str(job))
    records.wait_for("told-*", 4)
    records.wait_for("asked-*", 8)
    slurm.scancel(job)
    slurm.wait(job)
    assert len(records.names("counted-*-1")) == 4, slurm.report(job)
    assert_sound(slurm, job)


@both_ways
def test_a_job_that_somebody_else_has_put_back_into_the_queue(slurm, records, way):
    job = slurm.sbatch(script(way, "--requeue", *SMALL, *records.command("saving_rank.py")), *WHOLE, "--requeue")
    records.wait_for("started-0-*", 8)
    slurm.cluster.login.check("scontrol", "requeue", str(job))
    slurm.wait_for(job, ["PENDING"])
    assert len(records.names("saved-0-*-TERM")) == 8, slurm.report(job)
    assert "put back" not in slurm.output(job), slurm.output(job)
    slurm.scancel(job)


@both_ways
def test_preemption_with_requeue(slurm, records, tmp_path, way):
    """The launcher puts the job back into the queue; the count of restarts goes on."""
    command = ["--requeue", *SMALL, *records.command("saving_rank.py", "until=1")]
    job = slurm.sbatch(script(way, *command, before=late_signals(tmp_path / "late")), *WHOLE, "--requeue")
    records.wait_for("started-0-*", 8)
    urgent = slurm.sbatch("#!/bin/sh\ntrue\n", *WHOLE, "--partition=urgent")
    assert slurm.wait(urgent)["JobState"] == "COMPLETED"
    assert len(records.names("saved-0-*-TERM")) == 8, slurm.report(job)
    slurm.wait_for_requeue(job)
    ended = slurm.wait(job)
    assert (ended["Restarts"], ended["ExitCode"]) == ("1", "0:0"), slurm.report(job)
    assert len(records.names("started-1-*")) == 8, "TORCHELASTIC_RESTART_COUNT goes on"
    assert_sound(slurm, job)


@both_ways
def test_scancel_is_the_end_with_requeue_too(slurm, records, way):
    job = slurm.sbatch(script(way, "--requeue", *SMALL, *records.command("saving_rank.py")), *WHOLE, "--requeue")
    records.wait_for("started-0-*", 8)
    slurm.scancel(job)
    assert slurm.wait(job)["JobState"] == "CANCELLED", slurm.report(job)
    assert_sound(slurm, job)
    assert slurm.job(job)["Restarts"] == "0", slurm.report(job)


# --- what cannot begin ---


@pytest.mark.parametrize("node", [0, pytest.param(1, marks=pytest.mark.gate)])
def test_one_task_that_refuses_ends_all_at_once(slurm, ranks, node):
    """Not when --join-timeout is over."""
    command = shlex.join(map(str, (TAAS_RUN, *ranks("*=exit:0"))))
    task = f"[ $SLURM_NODEID = {node} ] && export PET_NNODES=77; exec {command}"
    job = slurm.sbatch(f"#!/bin/sh\nsrun --ntasks-per-node=1 sh -c {shlex.quote(task)}\n", "-N2", "--gpus-per-node=2")
    assert slurm.wait(job)["ExitCode"] == "2:0", slurm.report(job)
    output = slurm.output(job)
    assert "77" in output and f"{'the first node of the step' if node == 0 else 'g1'} cannot take part" in output, (
        output
    )
    assert_sound(slurm, job)


def test_a_job_with_tasks_by_gpu_starts_a_step_by_node(slurm, records):
    command = shlex.join([TAAS_RUN, "--gpus", "4", *records.command("report_rank.py")])
    job = slurm.sbatch(f"#!/bin/sh\n{command}\n", "-N2", "--gpus=4", "--ntasks-per-gpu=1")
    assert slurm.wait(job)["ExitCode"] == "0:0", slurm.report(job)
    assert len(records.environments()) == 4


def test_a_step_that_cannot_be_made_ends_the_run_at_once(slurm, records, tmp_path):
    """Also where --spares ask for more agents than the run needs."""
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\necho srun: error: Unable to create step >&2\nexit 1\n")
    srun.chmod(0o755)
    before = f"PATH={shlex.quote(str(tmp_path))}:$PATH\n"
    job = slurm.sbatch(
        script(
            "plain",
            "--gpus",
            "6",
            "--gpus-per-node",
            "2",
            "--spares",
            "1",
            *records.command("saving_rank.py"),
            before=before,
        ),
        *WHOLE,
    )
    assert slurm.wait(job)["ExitCode"] == "2:0", slurm.report(job)
    assert "Unable to create step" in slurm.output(job), slurm.output(job)


def test_nodes_that_are_busy_with_another_step_are_named(slurm, ranks, barrier):
    """srun waits for them, and says so itself after two minutes only."""
    busy = barrier / "busy"
    holds = shlex.quote(f"touch {busy}; exec sleep 1000")
    before = (
        f"srun -N2 --ntasks-per-node=1 --gpus-per-node=8 sh -c {holds} &\nuntil [ -e {busy} ]; do sleep 0.1; done\n"
    )
    job = slurm.sbatch(
        script("plain", "--gpus", "4", "--gpus-per-node", "2", *ranks("*=exit:0"), before=before),
        "-N2",
        "--gpus-per-node=8",
    )
    slurm.wait_for(job, {"RUNNING"})
    output = slurm.cluster.home / f"slurm-{job}.out"
    wait_until(lambda: output.exists() and "busy with another step" in output.read_text(), "the wait is told")
    assert "SLURM_OVERLAP=1" in slurm.output(job)
    slurm.scancel(job)
    assert slurm.wait(job)["JobState"] == "CANCELLED", slurm.report(job)


# --- what the tasks of a step share ---


def test_the_locks_of_a_step_go_with_it(slurm, ranks):
    command = shlex.join(map(str, (TAAS_RUN, "--gpus", "4", *ranks("*=exit:0"))))
    job = slurm.sbatch(f"#!/bin/sh\nsrun {command}\n", "-N2", "--gpus-per-node=2", "--ntasks-per-node=2")
    assert slurm.wait(job)["ExitCode"] == "0:0", slurm.report(job)
    alone = slurm.sbatch(f"#!/bin/sh\nsrun {command}\n", "-N2", "--gpus-per-node=2", "--ntasks-per-node=1")
    assert slurm.wait(alone)["ExitCode"] == "0:0", slurm.report(alone)
    left = [path for of in (job, alone) for path in pathlib.Path(f"/tmp/taas-of-{os.geteuid()}").glob(f"{of}.*")]
    assert not left


def test_tasks_with_a_private_tmp_end_with_their_leader(slurm, ranks):
    """They do not see its lock, and would wait a minute for a leader."""
    command = shlex.join(map(str, (TAAS_RUN, "--gpus", "4", *ranks("*=exit:0"))))
    folder = f"/tmp/taas-of-{os.geteuid()}"
    inside = f"mkdir -p -m 700 {folder}; mount -t tmpfs -o mode=700 tmpfs {folder}; exec {command}"
    task = f"exec unshare --mount sh -c {shlex.quote(inside)}"
    job = slurm.sbatch(
        f"#!/bin/sh\nsrun sh -c {shlex.quote(task)}\n", "-N2", "--gpus-per-node=2", "--ntasks-per-node=2"
    )
    output = slurm.cluster.home / f"slurm-{job}.out"
    wait_until(lambda: output.exists() and "done in" in output.read_text(), "the leaders have ended")
    done = time.monotonic()
    assert slurm.wait(job)["ExitCode"] == "0:0", slurm.report(job)
    assert time.monotonic() - done < 45


@pytest.mark.gate
def test_a_node_that_fails_is_replaced_by_a_spare(slurm, records):
    """kill -9 of everything of the job on one node, with a spare node in the allocation."""
    command = [TAAS_RUN, "--gpus", "6", "--gpus-per-node", "2", "--spares", "1", *records.command("living_rank.py")]
    job = slurm.sbatch(f"#!/bin/sh\nexec {shlex.join(command)}\n", *WHOLE, "--no-kill")
    records.wait_for_generation(0, 6)
    slurm.cluster["g1"].kill_all("taas-run", "living_rank")
    records.wait_for_generation(1, 6)
    records.finish()
    assert slurm.wait(job)["ExitCode"] == "0:0", slurm.report(job)
    records.assert_one_generation_at_a_time()
    assert_sound(slurm, job)
