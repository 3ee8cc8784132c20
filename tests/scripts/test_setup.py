"""The Python environment that the scripts make: nobody else's folder is emptied for it, and it is whole or missing."""

import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT

PREPARE = "begin Python; prepare_python"


@pytest.mark.gate
def test_a_folder_with_files_of_others_is_left_alone(shell):
    (shell.folder / "mine").mkdir()
    (shell.folder / "mine/thesis.tex").write_text("years of work")
    done = shell(PREPARE, TAAS_VENV="mine", TAAS_PYTHON=sys.executable)
    assert done.returncode == 1
    assert "was not made by these scripts" in done.stderr
    assert "TAAS_VENV" in done.stderr
    assert (shell.folder / "mine/thesis.tex").read_text() == "years of work"


@pytest.mark.gate
def test_a_file_in_place_of_the_folder_is_left_alone(shell):
    (shell.folder / "mine").write_text("a file")
    done = shell(PREPARE, TAAS_VENV="mine", TAAS_PYTHON=sys.executable)
    assert done.returncode == 1
    assert "is not a folder" in done.stderr
    assert (shell.folder / "mine").read_text() == "a file"


@pytest.mark.gate
def test_an_interpreter_inside_the_environment_does_not_empty_it(shell):
    bin_folder = shell.folder / "env/bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").symlink_to("/bin/false")
    done = shell(PREPARE, TAAS_VENV="env", TAAS_PYTHON="env/bin/python")
    assert done.returncode == 1
    assert "TAAS_PYTHON=env/bin/python has no torch" in done.stderr
    assert (bin_folder / "python").is_symlink()


def test_an_interpreter_that_does_not_exist_is_named(shell):
    done = shell(PREPARE, TAAS_PYTHON="nope/python")
    assert done.returncode == 1
    assert "TAAS_PYTHON=nope/python: there is no such interpreter" in done.stderr


def test_the_torch_of_an_interpreter_named_by_a_word_is_borrowed(shell):
    """And paths are relative to the caller's folder, an empty folder is taken, and what is ready is not made again."""
    (shell.folder / "env").mkdir()
    folder = pathlib.Path(sys.executable).parent
    environment = {"TAAS_VENV": "env", "TAAS_PYTHON": "python3", "PATH": f"{folder}:/usr/bin:/bin"}
    done = shell(PREPARE, **environment)
    assert done.returncode == 0, done.stderr
    assert (shell.folder / "env/borrowed-from").read_text().strip() == str(folder / "python3")
    seen = shell('activate_python; python3 -c "import sys, torch; print(sys.prefix)"', **environment)
    assert seen.stdout.strip() == str(shell.folder / "env")
    assert "has torch" in shell(PREPARE, **environment).stdout


@pytest.mark.gate
def test_what_quickstart_built_can_be_imported(shell):
    """`import taas` and `%load_ext taas`, in an environment that has the package by no other way."""
    (shell.folder / "build/python/taas").mkdir(parents=True)
    (shell.folder / "build/python/taas/__init__.py").write_text("print('found')")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(shell.folder / "env")], check=True)
    done = shell(
        'add_folder taas_run "$OLDPWD/build/python"; cd /; "$venv/bin/python" -c "import taas"', TAAS_VENV="env"
    )
    assert done.stdout == "found\n", done.stderr
    quickstart = (ROOT / "scripts/quickstart").read_text()
    assert 'add_folder taas_run "$builds/release/python"' in quickstart


@pytest.mark.gate
def test_an_environment_that_cannot_be_finished_gives_way_to_the_former_one(shell):
    former = shell.folder / "env"
    (former / "bin").mkdir(parents=True)
    (former / "made-by-taas-run").touch()
    (former / "bin/tool").write_text("of the former one")
    # An interpreter that has torch, as far as it was asked, and cannot make an environment.
    pretender = shell.folder / "python"
    pretender.write_text('#!/bin/sh\n[ "$1" = - ]\n')
    pretender.chmod(0o755)
    done = shell(PREPARE, TAAS_VENV="env", TAAS_PYTHON="./python")
    assert done.returncode == 1
    assert "failed" in done.stderr
    assert (former / "bin/tool").read_text() == "of the former one"
    assert not (shell.folder / "env.before").exists()
