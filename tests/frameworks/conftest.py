"""Runs programs of other people's frameworks by taas-run, by torchrun and by Python alone, and reads what ranks report.

A framework that is not installed skips its tests; where the variable CI is set it fails them. scripts/test installs
all.
"""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from free_port import free_port  # noqa: F401

TAAS_RUN = os.environ["TAAS_RUN"]
HERE = pathlib.Path(__file__).parent
PROGRAMS = HERE / "programs"
EXAMPLES = HERE.parent.parent / "docs" / "examples"
FULL = bool(os.environ.get("TAAS_FULL"))  # ./scripts/test --full
# Of mistakes that none of the programs here makes (tests/torch/test_hints.py).
HINTS = re.compile(
    "trained without a process group|trained as if there were no others|each used nn.DataParallel|all used GPU 0|"
    "saved to the same file|had the same samples"
)
DEADLINE_SECONDS = 600  # to import some of them takes minutes on a busy machine

TWO_NODES = ("--nnodes", "2", "--nproc-per-node", "2")
EIGHT_RANKS = ("--nproc-per-node", "8")
# The shapes that every framework is tried in; the fast whole has the first one.
shapes = pytest.mark.parametrize(
    "shape", [TWO_NODES, EIGHT_RANKS] if FULL else [TWO_NODES], ids=["2 nodes of 2", "8 ranks"][: 2 if FULL else 1]
)
full_only = pytest.mark.skipif(not FULL, reason="only in the full run (TAAS_FULL=1)")

FOREIGN_PREFIXES = ("PET_", "SLURM_", "TORCHELASTIC_", "TAAS_", "OMPI_", "PMI")
FOREIGN = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG"}


def world_size(shape) -> int:
    values = dict(zip(shape[::2], shape[1::2]))
    return int(values.get("--nnodes", 1)) * int(values["--nproc-per-node"])


def need(*packages: str):
    """Without these packages there is nothing to test."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if not missing:
        return
    reason = f"not installed: {', '.join(missing)} (pip install -r scripts/requirements-frameworks.txt)"
    pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


class Runner:
    """Runs programs in a folder of its own; ranks that report do so in `reports`."""

    def __init__(self, folder: pathlib.Path, options: tuple = ()):
        self.folder = folder
        self.options = options  # of every taas-run
        self.reports = folder / "reports"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name not in FOREIGN and not name.startswith(FOREIGN_PREFIXES)
        }
        self.environment.update(
            PATH=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
            REPORTS=str(self.reports),
            OMP_NUM_THREADS="1",
            HF_HUB_OFFLINE="1",
            TF_CPP_MIN_LOG_LEVEL="2",
            CUDA_VISIBLE_DEVICES="",
            TOKENIZERS_PARALLELISM="false",
            DS_ACCELERATOR="cpu",
            JAX_PLATFORMS="cpu",
        )

    def taas_run(self, *arguments, **variables) -> subprocess.CompletedProcess:
        result = self._run([TAAS_RUN, *self.options, *arguments], variables)
        assert not HINTS.search(result.stderr), result.stderr
        return result

    def torchrun(self, *arguments, **variables) -> subprocess.CompletedProcess:
        return self._run([sys.executable, "-m", "torch.distributed.run", *arguments], variables)

    def python(self, *arguments, **variables) -> subprocess.CompletedProcess:
        return self._run([sys.executable, *arguments], variables)

    def command(self, *arguments, folder=None, **variables) -> subprocess.CompletedProcess:
        return self._run(arguments, variables, folder)

    def _run(self, command, variables, folder=None) -> subprocess.CompletedProcess:
        """Again where Python's end has aborted a rank, under whichever launcher: see torch/test_scripts.py."""
        for _ in range(3):
            result = self._run_once(command, variables, folder)
            if "terminate called without an active exception" not in result.stderr:
                break
        return result

    def _run_once(self, command, variables, folder) -> subprocess.CompletedProcess:
        try:
            return subprocess.run(
                list(map(str, command)),
                cwd=folder or self.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env={**self.environment, **variables},
                timeout=DEADLINE_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise AssertionError(
                f"not within {DEADLINE_SECONDS} s: {command}\n{error.stdout}\n{error.stderr}"
            ) from None

    def reported(self, result: subprocess.CompletedProcess, ranks: int) -> list[dict]:
        """What the ranks of a run that ended well have reported, in their order."""
        assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
        found = [json.loads((self.reports / f"{rank}.json").read_text()) for rank in range(ranks)]
        assert len(list(self.reports.iterdir())) == ranks
        for path in list(self.reports.iterdir()):
            path.unlink()
        return found


# Ranks out of an interpreter that has imported torch already, the default; and in the full run fresh ones too.
@pytest.fixture(
    params=[(), ("--preload", "none")] if FULL else [()], ids=["preloaded", "fresh"] if FULL else ["preloaded"]
)
def runner(tmp_path, request) -> Runner:
    runner = Runner(tmp_path, request.param)
    runner.reports.mkdir()
    return runner
