"""Which modules are the program's own, whose globals data workers follow."""

import importlib
import sys

import pytest
from taas.code.program_globals import is_own


@pytest.fixture(params=["of_the_program", "venv/lib/python3/site-packages", "usr/lib/python3/dist-packages"])
def module(request, tmp_path, monkeypatch):
    """A module in a folder that is on sys.path, as PYTHONPATH and .pth files put it there."""
    folder = tmp_path / request.param
    folder.mkdir(parents=True)
    name = f"module_{abs(hash(request.param))}"
    (folder / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(folder))
    yield request.param, importlib.import_module(name)
    sys.modules.pop(name)


def test_packages_are_not_the_programs_wherever_they_are_installed(module):
    where, imported = module
    assert is_own(imported.__name__) == (where == "of_the_program")
