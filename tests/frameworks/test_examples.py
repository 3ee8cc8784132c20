"""docs/examples: every command that they name."""

import pathlib
import re
import shutil

import pytest

from conftest import EXAMPLES, TAAS_RUN, full_only, need


@pytest.mark.parametrize("ranks", [1, 4])
def test_collectives_tour(runner, ranks):
    need("torch")
    result = runner.taas_run("--nproc-per-node", ranks, EXAMPLES / "collectives_tour.py")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"get_rank, get_world_size: rank 0 of {ranks}",
        "barrier: all ranks are here",
        f"send, recv: the sum of all ranks came round as {sum(range(ranks))}",
        "broadcast: every rank has rank 0's 42",
        f"all_reduce: 1 + … + {ranks} = {ranks * (ranks + 1) // 2}",
        f"gather: rank 0 has {[10 * rank for rank in range(ranks)]}",
        "scatter: every rank has the square of its rank",
    ]


def test_auto_mode(runner):
    need("torch")
    script = EXAMPLES / "auto_mode.py"
    alone, below = runner.python(script, "--epochs", 3), runner.taas_run(script, "--epochs", 3)
    many = runner.taas_run("--nproc-per-node", 2, script, "--epochs", 3)
    assert re.fullmatch(r"one process on cpu: loss 0\.\d+\n", alone.stdout), alone.stderr
    assert below.stdout == alone.stdout, below.stderr
    assert re.fullmatch(r"2 processes on cpu: loss 0\.\d+\n", many.stdout), many.stderr


@full_only
@pytest.mark.parametrize("name, package", [("lightning_digits.py", "lightning"), ("deepspeed_zero.py", "deepspeed")])
def test_trainers_alone_and_as_their_first_lines_say(runner, name, package):
    need(package)
    for shape in (("--nproc-per-node", 1), ("--nnodes", 2, "--nproc-per-node", 2)):
        result = runner.taas_run(*shape, EXAMPLES / name)
        assert result.returncode == 0, result.stderr
        assert re.search(r"^\d ranks, \d+ steps, loss ", result.stdout, re.MULTILINE), result.stdout


@pytest.fixture
def project(runner) -> pathlib.Path:
    """A copy, as a user begins with one; taas-run is in PATH."""
    runner.environment["PATH"] = f"{pathlib.Path(TAAS_RUN).parent}:{runner.environment['PATH']}"
    return pathlib.Path(shutil.copytree(EXAMPLES / "project", runner.folder / "project"))


def test_project(runner, project):
    need("torch")
    setup = runner.command("make", "setup", folder=project)
    assert (setup.returncode, setup.stdout) == (0, "torch and taas-run are here already\n"), setup.stderr
    smoke = runner.command("make", "smoke", folder=project)
    assert smoke.returncode == 0, smoke.stderr
    assert re.search(r"^epoch 0: loss \d\.\d+ on 2 ranks$", smoke.stdout, re.MULTILINE), smoke.stdout
    assert (project / "taas-runs/latest/output/checkpoint.pt").stat().st_size > 0
    trained = runner.command("./scripts/run_distributed.sh", "--samples", 512, "--epochs", 2, folder=project, GPUS="2")
    assert trained.returncode == 0, trained.stderr
    losses = re.findall(r"^epoch \d: loss (\S+) on 2 ranks$", trained.stdout, re.MULTILINE)
    assert len(losses) == 2 and float(losses[1]) < float(losses[0]), trained.stdout


def test_project_makes_an_environment_where_there_is_none(runner, project):
    (project / "requirements.txt").write_text("")  # what it names is gigabytes
    result = runner.command("make", "setup", "READY=false", folder=project)
    assert result.returncode == 0, result.stderr
    assert (project / ".venv/bin/python").exists() and (project / ".venv/ready").exists()
    again = runner.command("make", "setup", "READY=false", folder=project)
    assert "up to date" in again.stdout, again.stdout


def test_project_goes_on_from_its_checkpoint(runner, project):
    need("torch")
    text = (project / "train.py").read_text()
    failing = text.replace("        save(plain, optimizer, epoch)\n",
                           "        save(plain, optimizer, epoch)\n"
                           "        if epoch == 1 and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
                           "            raise RuntimeError('the machine is struck by lightning')\n")
    assert failing != text
    (project / "train.py").write_text(failing)
    result = runner.command("./scripts/run_distributed.sh", "--samples", 256, "--epochs", 3, folder=project, RANKS="2")
    assert result.returncode == 0, result.stderr
    epochs = re.findall(r"^epoch (\d)", result.stdout, re.MULTILINE)
    assert epochs[0] == "0" and epochs[-1] == "2" and len(epochs) == len(set(epochs)), result.stdout
