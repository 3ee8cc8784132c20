"""What the program sets in modules of its own stays there, and a line says so."""

import importlib
import sys

import pytest
import taas
from conftest import loop
from taas.sending.modules import is_own
from torch.utils.data import DataLoader


@pytest.mark.parametrize("where", ["of_the_program", "venv/lib/python3/site-packages", "usr/lib/python3/dist-packages"])
def test_packages_are_not_the_programs_wherever_they_are_installed(where, tmp_path, monkeypatch):
    """In a folder that is on sys.path, as PYTHONPATH and .pth files put it there."""
    folder, name = tmp_path / where, f"module_{abs(hash(where))}"
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(folder))
    importlib.import_module(name)
    assert is_own(name) == (where == "of_the_program")
    sys.modules.pop(name)


CONFIGURATION = """
from torch.utils.data import Dataset

SCALE, NAMES, HANDLE, NAN, MASK = 1, ["a"], open(__file__), float("nan"), 1 << 20000
COUNT = 0


class Scaled(Dataset):
    factor = [1]

    def __len__(self):
        return 2

    def __getitem__(self, index):
        global COUNT
        COUNT += 1
        return SCALE, self.factor[0], NAMES[-1]
"""


@pytest.fixture
def configured(tmp_path, monkeypatch):
    (tmp_path / "configuration_of_ours.py").write_text(CONFIGURATION)
    (tmp_path / "elsewhere.py").write_text("SCALE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = [importlib.import_module(name) for name in ("configuration_of_ours", "elsewhere")]
    yield modules
    for module in modules:
        sys.modules.pop(module.__name__)


@pytest.mark.parametrize("is_changed", [False, True])
def test_what_was_set_in_a_module_is_said_once(is_changed, configured, data_workers):
    """Of those that data workers have loaded with the dataset; what is a string may be a secret."""
    configuration, elsewhere = configured
    run = data_workers(1)
    if is_changed:
        configuration.SCALE = elsewhere.SCALE = 64
        configuration.Scaled.factor[0] = 5
        configuration.NAMES.append("b")
    with taas.register(DataLoader(configuration.Scaled(), 1, collate_fn=tuple)) as loader:
        assert set(loop(loader, 2)) == {((1, 1, "a"),)}
    said = [line for line in run.remarks() if "where the module is imported" in line]
    expected = [  # in the order of modules, and in each as they are set
        "configuration_of_ours.NAMES is not in the program what it is",
        "configuration_of_ours.SCALE is 64 in the program and 1",
        "configuration_of_ours.Scaled.factor is [5] in the program and [1]",
    ]
    tail = " where the module is imported: data workers see the latter; give it to the dataset"
    assert sorted(said) == ([line + tail for line in expected] if is_changed else [])
