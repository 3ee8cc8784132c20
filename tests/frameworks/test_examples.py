"""docs/examples: every command that they name."""

import pathlib
import re
import shutil

import pytest

from conftest import EXAMPLES, TAAS_RUN, need


@pytest.mark.parametrize("ranks", [1, 4])
def test_collectives_tour(runner, ranks):
    need("torch")
    result = runner.taas_run("--nproc-per-node", ranks, EXAMPLES / "collectives_tour.py")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"get_rank, get_world_size: rank 0 of {ranks}",
        "barrier: all ranks are here",
        "send, recv: rank 0's 7 has gone down the line",
        f"isend, irecv: the sum of all ranks came round as {sum(range(ranks))}",
        "broadcast: every rank has rank 0's 42",
        f"all_reduce: 1 + … + {ranks} = {ranks * (ranks + 1) // 2}",
        f"gather: rank 0 has {[10 * rank for rank in range(ranks)]}",
        "scatter: every rank has the square of its rank",
    ]


def test_auto_mode(runner):
    need("torch")
    script = EXAMPLES / "auto_mode.py"
    alone, below = runner.python(script, "--epochs", 3), runner.taas_run(script, "--epochs", 3)
    assert re.fullmatch(r"one process on cpu: loss 0\.\d+\n", alone.stdout), alone.stderr
    assert below.stdout == alone.stdout, below.stderr


def test_steps_of_the_workflow_train_two_ranks(runner):
    """But for those that install packages."""
    need("torch", "yaml")
    import yaml

    runner.environment["PATH"] = f"{pathlib.Path(TAAS_RUN).parent}:{runner.environment['PATH']}"
    shutil.copy(EXAMPLES / "auto_mode.py", runner.folder / "train.py")
    (job,) = yaml.safe_load((EXAMPLES / "ci/smoke-test.yml").read_text())["jobs"].values()
    commands = [step["run"] for step in job["steps"] if step.get("run", "").startswith("taas-run ")]
    done = runner.command("bash", "-ec", "\n".join(commands), **job["env"])
    assert done.returncode == 0 and len(commands) == 2, done.stderr
    assert "2 processes on cpu: loss 0." in done.stdout
    assert (runner.folder / job["steps"][-1]["with"]["path"] / "latest").is_dir(), "the logs that the last step keeps"
