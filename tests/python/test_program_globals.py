"""Which modules are the program's own, and that data workers see in them what the program has there."""

import importlib
import sys

import pytest
import taas
from conftest import loop
from taas.code.program_globals import is_own
from torch.utils.data import DataLoader


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


CONFIGURATION = """
import contextvars, types
from torch.utils.data import Dataset

settings = types.SimpleNamespace(scale=1, names=["a"], handle=None)
scale = contextvars.ContextVar("scale", default=1)


class Scaled(Dataset):
    factor = [1]

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index * settings.scale * self.factor[0] * scale.get(), settings.names[-1]
"""


@pytest.fixture
def configured(tmp_path, monkeypatch):
    (tmp_path / "configuration_of_ours.py").write_text(CONFIGURATION)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("configuration_of_ours")
    sys.modules.pop("configuration_of_ours")


def test_what_modules_hold_is_as_in_the_program(configured, data_workers):
    """Before its first loop, and what it changes between loops."""
    configured.settings.names.append("b")
    configured.settings.scale = 2
    data_workers(1)
    with taas.register(DataLoader(configured.Scaled(), 4, collate_fn=list)) as loader:
        assert loop(loader) == [[(2 * index, "b") for index in range(4)]]
        configured.settings.names.append("c")
        assert loop(loader) == [[(2 * index, "c") for index in range(4)]]
        configured.Scaled.factor[0] = 5
        configured.scale.set(3)
        assert loop(loader) == [[(30 * index, "c") for index in range(4)]]


def test_what_cannot_be_sent_and_changes_is_named(configured, data_workers):
    run = data_workers(1)
    configured.settings.handle = open(__file__)
    with taas.register(DataLoader(configured.Scaled(), 4, collate_fn=list)) as loader:
        loop(loader)
        configured.settings = type(configured.settings)(**vars(configured.settings))
        loop(loader)
    assert any(
        "configuration_of_ours.settings has changed, and data workers cannot be sent it" in line
        for line in run.remarks()
    )
