"""docs/examples/project: its make targets, its training, and where its script submits to."""

import importlib
import os
import pathlib
import re
import shutil

import pytest

from conftest import EXAMPLES, TAAS_RUN, full_only, need

EPOCH = re.compile(
    r"^epoch (\d): loss (\S+) on (\d) ranks?, exact match (\S+), F1 (\S+), long answer (\S+)$", re.MULTILINE
)
SMALL = ("--samples", 128, "--batch-size", 16, "--epochs", 2)
FAILS_ONCE = """\
        if (self.position.epoch, step) == (1, 4) and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            raise RuntimeError("the machine is struck by lightning")
"""


@pytest.fixture
def project(runner) -> pathlib.Path:
    """A copy, as a user begins with one; taas-run is in PATH, and SLURM is not."""
    runner.environment["PATH"] = f"{pathlib.Path(TAAS_RUN).parent}:{runner.environment['PATH']}"
    runner.environment["PLATFORM"] = "here"
    return pathlib.Path(shutil.copytree(EXAMPLES / "project", runner.folder / "project"))


def epochs(text: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, found)) for found in EPOCH.findall(text)]


def test_setup_uses_what_is_here(runner, project):
    need("torch")
    setup = runner.command("make", "setup", folder=project)
    assert (setup.returncode, setup.stdout) == (0, "torch and taas-run are here already\n"), setup.stderr


def test_setup_makes_an_environment_where_there_is_none(runner, project):
    (project / "requirements.txt").write_text("")  # what it names is gigabytes
    result = runner.command("make", "setup", "FRESH=1", folder=project)
    assert result.returncode == 0, result.stderr
    assert f".venv is ready, with {TAAS_RUN}" in result.stdout
    found = runner.command(project / ".venv/bin/taas-run", "--version")
    assert found.returncode == 0 and "taas-run" in found.stdout, found.stderr
    again = runner.command("make", "setup", folder=project)
    assert again.stdout == ".venv is up to date\n", again.stdout


@pytest.mark.parametrize(
    "package, said",
    [
        ("", "no taas-run here: put it into PATH, name a wheel"),
        ("/nowhere/taas_run.whl", "TAAS_RUN_PACKAGE=/nowhere/taas_run.whl: there is no such wheel or folder"),
    ],
    ids=["no launcher", "no such wheel"],
)
def test_setup_says_what_is_missing_before_it_downloads_anything(runner, project, package, said):
    result = runner.command("make", "setup", folder=project, PATH="/usr/bin:/bin", TAAS_RUN_PACKAGE=package)
    assert result.returncode == 2 and f"setup: {said}" in result.stderr, result.stderr
    assert not (project / ".venv").exists()


def test_two_ranks_learn(runner, project):
    """The evaluation's questions are not those of the training; always to say "no answer" is right for three in ten."""
    need("torch")
    result = runner.command(
        "scripts/run_distributed_on_platform.sh",
        "--samples",
        1024,
        "--epochs",
        2,
        "--batch-size",
        16,
        folder=project,
        RANKS="2",
    )
    assert result.returncode == 0, result.stderr
    assert "training here: taas-run --nproc-per-node 2 " in result.stderr
    first, last = epochs(result.stdout)
    assert last[1] < first[1] / 2 and last[2] == 2, result.stdout
    assert last[3] > 0.6 > first[3] and last[5] > 0.75, result.stdout
    assert (project / "taas-runs/latest/output/checkpoint.pt").stat().st_size > 0


def test_a_run_that_goes_on_ends_as_if_nothing_had_happened(runner, project):
    need("torch")
    import torch

    ended = {}
    for name in ("undisturbed", "struck"):
        if name == "struck":
            text = (project / "train.py").read_text()
            head = "        # What is random in a step"
            (project / "train.py").write_text(
                text.replace("import sys\n", "import os\nimport sys\n").replace(head, FAILS_ONCE + head)
            )
        run = runner.taas_run(
            "--nproc-per-node",
            2,
            "--max-restarts",
            1,
            "--output",
            runner.folder / name,
            project / "train.py",
            *SMALL,
            "--save-every",
            3,
        )
        assert run.returncode == 0, run.stderr
        assert ("lightning" in run.stderr) == (name == "struck")
        assert [each[0] for each in epochs(run.stdout)] == [0, 1], run.stdout
        ended[name] = torch.load(runner.folder / name / "latest/output/checkpoint.pt")
    assert ended["struck"]["position"] == ended["undisturbed"]["position"] == {"epoch": 2, "samples": 0}
    for name, values in ended["undisturbed"]["model"].items():
        assert torch.equal(values, ended["struck"]["model"][name]), name


def test_a_file_to_resume_from_that_is_no_checkpoint(tmp_path, monkeypatch):
    need("torch")
    import torch

    monkeypatch.syspath_prepend(str(EXAMPLES / "project"))
    checkpoint = importlib.import_module("checkpoint")
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    other = {"model": torch.nn.Linear(2, 1).state_dict(), "optimizer": optimizer.state_dict(), "position": {}}
    torch.save(other, tmp_path / "other.pt")
    (tmp_path / "notes.txt").write_text("no checkpoint")
    for name in ("other.pt", "notes.txt", "absent.pt"):
        with pytest.raises(checkpoint.CheckpointError, match=f"{name}: not a checkpoint of this model: ") as error:
            checkpoint.load(model, optimizer, str(tmp_path / name))
        assert "\n" not in str(error.value)


@full_only
def test_tensorflow_learns_the_same(runner, project):
    need("tensorflow")
    result = runner.taas_run(
        "--framework",
        "tf",
        "--nproc-per-node",
        2,
        project / "train_tf.py",
        "--samples",
        256,
        "--batch-size",
        16,
        "--epochs",
        2,
    )
    assert result.returncode == 0, result.stderr
    first, second = epochs(result.stdout)
    assert first[2] == second[2] == 2 and second[1] < first[1], result.stdout
    assert (runner.folder / "taas-runs/latest/output/checkpoint.weights.h5").stat().st_size > 0


@pytest.mark.parametrize(
    "variables, sbatch, said, passed",
    [
        ({}, False, "here", ""),
        ({"GPUS": "4"}, False, "here", "--gpus 4 "),
        ({}, True, "as a job of SLURM", "--slurm --gpus 8 "),
        ({"RANKS": "3", "NODES": "2"}, True, "as a job of SLURM", "--slurm --nnodes 2 --nproc-per-node 3 "),
        ({"SLURM_JOB_ID": "7", "GPUS": "16"}, True, "here, in job 7 of SLURM", "--gpus 16 "),
        ({"HOSTS": "a,b"}, True, "over ssh on a,b", "--hosts a,b --gpus 16 "),
        ({"HOSTS": "a:2,b:1"}, False, "over ssh on a:2,b:1", "--hosts a:2,b:1 "),
        ({"HOSTS": "a,b", "PLATFORM": "slurm"}, True, "as a job of SLURM", "--slurm --gpus 8 "),
    ],
)
def test_where_the_script_submits_to(runner, project, variables, sbatch, said, passed):
    """taas-run itself is taken from here; what it does with these flags is tested elsewhere."""
    programs = runner.folder / "programs"
    programs.mkdir()
    for name in ("dirname", "tr", "wc", "sh", *(["sbatch"] if sbatch else [])):
        os.symlink(shutil.which("true" if name == "sbatch" else name), programs / name)
    (programs / "taas-run").write_text('#!/bin/sh\necho "$@"\n')
    (programs / "taas-run").chmod(0o755)
    result = runner.command(
        "scripts/run_distributed_on_platform.sh",
        "--epochs",
        1,
        folder=project,
        **{"PLATFORM": "", "PATH": str(programs), "TAAS_ARGUMENTS": "--quiet", **variables},
    )
    assert result.stdout == f"{passed}--max-restarts 2 --quiet train.py --epochs 1\n", result.stderr
    assert result.stderr == f"training {said}: taas-run {result.stdout}"


def test_a_platform_that_does_not_exist(runner, project):
    result = runner.command("scripts/run_distributed_on_platform.sh", folder=project, PLATFORM="cloud")
    assert (result.returncode, result.stderr) == (2, "PLATFORM=cloud: neither ssh, slurm nor here\n")
