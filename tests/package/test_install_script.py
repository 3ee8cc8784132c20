"""./scripts/install: a wheel of the build under test, in the environment that is active. Nothing is fetched, and nothing compiled."""

import os
import pathlib
import subprocess

import pytest

from environments import BUILD, HANG, SOURCE, Environment


@pytest.fixture
def install(environment: Environment, tmp_path: pathlib.Path):
    """Runs the script in a shell with these variables; without any, the environment is active."""
    environment.borrow("cloudpickle", "pip")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/release").symlink_to(BUILD)

    def run(*extras: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run([SOURCE / "scripts/install", *extras], capture_output=True, text=True, timeout=HANG, cwd=tmp_path, env={
            "HOME": str(tmp_path), "TAAS_BUILD": str(tmp_path / "build"), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull,
            **(variables or environment.activated())})

    return run


def test_the_active_environment_has_it_then(install, environment: Environment) -> None:
    for _ in range(2):  # pip would take the second one for the first
        done = install()
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"installing it into {environment.root}" in done.stdout and "compiling" not in done.stdout
    told = environment.python("import taas, taas.runtime.native as n; print(taas.__file__); assert n.module, n.why_absent")
    assert told.stdout == f"{environment.site}/taas/__init__.py\n", told.stderr
    assert environment.launch("--gpus", 2, environment.script("import taas"), CUDA_VISIBLE_DEVICES="").returncode == 0


def test_an_extra_is_asked_for_too(install) -> None:
    done = install("notebook")
    assert done.returncode == 1 and "No matching distribution found for ipykernel" in done.stderr, done.stdout + done.stderr
    assert "notebok: there are the extras notebook and torch" in install("notebok").stderr


def test_the_distribution_s_python_is_left_alone(install, tmp_path: pathlib.Path) -> None:
    """Where it says that it is managed by the distribution, as Debian's and Ubuntu's do."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").write_text('#!/bin/sh\ncase $2 in *EXTERNALLY-MANAGED*) exit 1 ;; esac\nexec /usr/bin/python3 "$@"\n')
    (tmp_path / "bin/python3").chmod(0o755)
    done = install(PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    assert done.returncode == 1
    assert f"no Python environment is active, and {tmp_path}/bin/python3 belongs to the distribution" in done.stderr, done.stderr
