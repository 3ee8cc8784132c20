"""docs/examples/ci: the workflow's commands as they stand, for a project that has what its README asks for."""

import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

from environments import HANG, SOURCE, Environment

yaml = pytest.importorskip("yaml", reason="no PyYAML to read the workflow with")
torch = pytest.importorskip("torch", reason="no torch to train with")

PIP_WITHOUT_AN_INDEX = """#!/bin/sh
if [ "$1 $2" = "-m pip" ]; then
  shift 3
  exec {tests} -m pip --python {python} install --no-index --find-links {dependencies} "$@"
fi
exec {python} "$@"
"""


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    workflow = yaml.safe_load((SOURCE / "docs/examples/ci/smoke-test.yml").read_text())
    assert set(workflow[True]) == {"push", "pull_request"}  # YAML 1.1 reads the word "on" as true
    (job,) = workflow["jobs"].values()
    return job


@pytest.fixture
def project(environment: Environment, wheel: pathlib.Path, cloudpickle: pathlib.Path) -> pathlib.Path:
    folder = environment.root / "project"
    (folder / "wheels").mkdir(parents=True)
    shutil.copy(wheel, folder / "wheels")
    shutil.copy(SOURCE / "docs/examples/auto_mode.py", folder / "train.py")
    (folder / "requirements.txt").write_text("cloudpickle\n")  # torch is borrowed: it is gigabytes
    python = folder / "commands" / "python"
    python.parent.mkdir()
    python.write_text(
        PIP_WITHOUT_AN_INDEX.format(
            tests=sys.executable, python=environment.bin / "python", dependencies=cloudpickle.parent
        )
    )
    python.chmod(0o755)
    return folder


def run(
    command: str, environment: Environment, folder: pathlib.Path, variables: dict[str, str]
) -> subprocess.CompletedProcess:
    """As the runner does it: with bash, which ends at the first failure."""
    path = f"{folder / 'commands'}:{environment.bin}:/usr/bin:/bin"
    borrowed = pathlib.Path(torch.__file__).parents[1]
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANG,
        env={"PATH": path, "HOME": str(folder), "PYTHONPATH": str(borrowed), **variables},
    )


def test_its_commands_train_two_ranks_on_the_cpu(
    environment: Environment, project: pathlib.Path, job: dict[str, Any]
) -> None:
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert [command.split()[0] for command in commands] == ["python", "python", "taas-run", "taas-run"]
    for command in commands:
        done = run(command, environment, project, job["env"])
        assert done.returncode == 0, done.stdout + done.stderr
    assert "2 processes on cpu: loss 0." in done.stdout
    assert (project / "taas-runs" / "latest").is_dir()  # what the last step keeps


def test_a_failing_rank_fails_the_step(
    environment: Environment, project: pathlib.Path, job: dict[str, Any], wheel: pathlib.Path
) -> None:
    environment.pip("install", wheel)
    (project / "train.py").write_text("import os, sys\nsys.exit(3 if os.environ['RANK'] == '1' else 0)\n")
    last = [step["run"] for step in job["steps"] if "run" in step][-1]
    assert run(last, environment, project, job["env"]).returncode == 3


def test_the_logs_of_a_failure_are_kept(job: dict[str, Any]) -> None:
    last = job["steps"][-1]
    assert last["if"] == "failure()" and last["with"]["path"] == "taas-runs"
