"""The environment of ./scripts/quickstart, where the build is linked: import taas, notebooks, and a wheel in its place."""

import json
import pathlib
from typing import Callable

import pytest

from environments import BUILD, SOURCE, Environment

LINK = SOURCE / "scripts/lib/link_build.py"
RANKS = "import os, sys, taas\nprint('rank', os.environ['RANK'], sys.executable, taas.__file__, flush=True)\n"


@pytest.fixture
def linked(quickstart_environment: Callable[..., Environment]) -> Environment:
    return quickstart_environment()


def test_taas_is_imported_from_the_build(linked: Environment) -> None:
    told = linked.python("import taas, taas.runtime.native as n; print(taas.__file__, n.module.__file__)")
    assert told.returncode == 0, told.stderr
    assert all(path.startswith(f"{BUILD}/python/taas/") for path in told.stdout.split()), told.stdout
    assert linked.run(linked.bin / "python", "-m", "taas", "--version").stdout.startswith("taas-run ")


def test_its_taas_run_needs_no_activation(linked: Environment) -> None:
    run = linked.launch("--gpus", 2, "-t", "3", linked.script(RANKS), CUDA_VISIBLE_DEVICES="")
    assert run.returncode == 0, run.stderr
    for rank in range(2):
        assert f"rank {rank} {linked.bin}/python {BUILD}/python/taas/__init__.py" in run.stdout, run.stdout


def test_pip_takes_it_for_installed(linked: Environment) -> None:
    (shown,) = (each for each in json.loads(linked.pip("list", "--format", "json")) if each["name"] == "taas-run")
    assert shown["editable_project_location"] == str(SOURCE)
    linked.borrow("taas-run[notebook]")
    assert "Requirement already satisfied: taas-run[notebook]" in linked.pip("install", "taas-run[notebook]")


def test_a_wheel_takes_its_place_and_it_that_of_a_wheel(linked: Environment, wheel: pathlib.Path) -> None:
    before = linked.files()
    linked.pip("install", "--force-reinstall", "--no-deps", wheel)
    assert linked.python("import taas; print(taas.__file__)").stdout == f"{linked.site}/taas/__init__.py\n"
    assert not (linked.bin / "taas-run").is_symlink() and not list(linked.site.glob("__editable__*"))
    linked.borrow("pip")
    again = linked.run(linked.bin / "python", LINK, BUILD, folder=SOURCE)
    assert again.returncode == 0, again.stderr
    assert linked.python("import taas; print(taas.__file__)").stdout == f"{BUILD}/python/taas/__init__.py\n"
    assert {name for name in linked.files() if not name.startswith("borrowed")} == {
        name for name in before if not name.startswith("borrowed")}
    linked.pip("uninstall", "-y", "taas-run")
    assert linked.python("import taas").returncode == 1
    left = linked.bin / "taas-run"  # Debian's pip takes a link for what it leads to, and leaves what is not in the environment
    assert not left.is_symlink() or left.resolve() == (BUILD / "bin/taas-run").resolve()


def test_a_build_elsewhere_is_linked_by_the_next_quickstart(linked: Environment, tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other build"
    other.symlink_to(BUILD)
    assert linked.run(linked.bin / "python", LINK, other, folder=SOURCE).returncode == 0
    assert linked.python("import taas; print(taas.__file__)").stdout == f"{other}/python/taas/__init__.py\n"
    assert len(list(linked.site.glob("taas_run-*.dist-info"))) == 1
