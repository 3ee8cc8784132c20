"""What the program sets in modules of its own stays there, and a line says so."""

import importlib
import sys

import pytest
import taas
from conftest import loop
from torch.utils.data import DataLoader


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


PLACES = ["of_the_program", "venv/lib/python3/site-packages", "usr/lib/python3/dist-packages"]


@pytest.mark.parametrize("where, is_changed", [(PLACES[0], False), *((where, True) for where in PLACES)])
def test_what_was_set_in_a_module_of_the_program_is_said_once(where, is_changed, data_workers, tmp_path, monkeypatch):
    """Of those that data workers have loaded with the dataset; what is a string may be a secret.

    Packages are not the program's wherever PYTHONPATH and .pth files put them.
    """
    folder = tmp_path / where
    folder.mkdir(parents=True)
    (folder / "configuration_of_ours.py").write_text(CONFIGURATION)
    (folder / "elsewhere.py").write_text("SCALE = 1\n")
    monkeypatch.syspath_prepend(str(folder))
    for name in ("configuration_of_ours", "elsewhere"):
        sys.modules.pop(name, None)
    configuration, elsewhere = map(importlib.import_module, ("configuration_of_ours", "elsewhere"))
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
    assert sorted(said) == [line + tail for line in expected] * (is_changed and where == PLACES[0])
