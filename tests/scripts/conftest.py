"""Runs functions of scripts/lib as the scripts do."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from waiting import DEADLINE_SECONDS  # noqa: F401

SETUP_SECONDS = 600  # an environment may be made
ROOT = pathlib.Path(__file__).parent.parent.parent


@pytest.fixture
def shell(tmp_path):
    """shell(text, **environment) runs bash code after scripts/lib/setup.sh, from an empty folder `called_from`."""
    called_from = tmp_path / "called_from"
    called_from.mkdir()

    def run(text: str, **environment) -> subprocess.CompletedProcess:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TAAS_", "VIRTUAL_ENV"))}
        script = f"set -euo pipefail; cd '{ROOT}'; . scripts/lib/setup.sh; . scripts/lib/checks.sh; {text}"
        return subprocess.run(
            ["bash", "-c", script],
            cwd=called_from,
            text=True,
            capture_output=True,
            timeout=SETUP_SECONDS,
            env=inherited | {"TAAS_BUILD": str(tmp_path / "build"), **environment},
        )

    run.folder = called_from
    return run
