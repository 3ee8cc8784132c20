"""What --slurm asks SLURM for. Its commands are stand-ins that print their arguments; tests/cluster has a real SLURM."""

import sys

import pytest


@pytest.fixture
def submitted(launcher):
    """The words that the command of SLURM was called with."""
    tools = launcher.folder / "tools"
    tools.mkdir()
    for name in ("srun", "sbatch", "salloc"):
        (tools / name).write_text('#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n')
        (tools / name).chmod(0o755)

    def submit(*arguments, **variables) -> list[str]:
        done = launcher.run("--slurm", *arguments, env={"PATH": f"{tools}:{launcher.environment['PATH']}", **variables})
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return submit


def test_a_job_asks_for_all_gpus(submitted):
    words = submitted("--gpus", 16, "--devices-per-rank", 2, "train.py")
    assert words[0] == "srun" and {"--nodes=2", "--gpus-per-node=8"} <= set(words)


@pytest.mark.parametrize("program, name", [
    (["folder/train.py", "--lr", "1"], "train.py"),
    (["-m", "package.train"], "package.train"),
    ([sys.executable, "-u", "folder/train.py"], "train.py"),
    (["python3", "-m", "package.train", "--lr", "1"], "package.train"),
    (["python3", "-c", "print(1)"], "python3"),
    (["/bin/true"], "true"),
], ids=" ".join)
def test_a_detached_job_is_named_after_its_script(submitted, program, name):
    words = submitted("--detach", "--gpus", 8, *program)
    assert words[0] == "sbatch" and f"--job-name={name}" in words


def test_so_is_a_job_that_is_waited_for(submitted):
    for command, options in {"srun": (), "salloc": ("--cpus", 1)}.items():
        words = submitted("--gpus", 8, *options, "train.py")
        assert words[0] == command and words.count("--job-name=train.py") == 1


def test_a_name_of_the_user_s_own_stays(submitted):
    words = submitted("--detach", "--gpus", 8, "--slurm-option", "job-name=mine", "train.py")
    assert [word for word in words if word.startswith("--job-name=")][-1] == "--job-name=mine", "the last one counts"
    for variable, options in {"SBATCH_JOB_NAME": ["--detach"], "SLURM_JOB_NAME": [], "SALLOC_JOB_NAME": ["--cpus", 1]}.items():
        words = submitted(*options, "--gpus", 8, "train.py", **{variable: "mine"})
        assert not [word for word in words if word.startswith("--job-name=")], variable
