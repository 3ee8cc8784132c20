"""The seminar's cells one after another; where there are no two GPUs, their devices are the CPU under another number."""

import re
import types

import pytest

from pieces import seminar_cells

torch = pytest.importorskip("torch")

TENSORS = [cell for cell in seminar_cells() if cell[1]]
HERE = "cuda" if torch.cuda.device_count() > 1 else "cpu"


def for_this_machine(text: str) -> str:
    """A cell or what it shows, for the devices that are here. A tensor on the CPU is shown without its device."""
    return text if HERE == "cuda" else re.sub(r", device='cuda:\d'", "", text).replace("cuda", "cpu")


@pytest.mark.parametrize("code, output", TENSORS, ids=[code for code, _ in TENSORS])
def test_a_cell_shows_what_the_seminar_shows(code, output):
    value = eval(for_this_machine(code), {"torch": torch})
    assert repr(value).replace("(type='cpu')", "(type='cpu', index=0)") == for_this_machine(output)


def test_every_name_of_the_seminar_is_there():
    names = {name for code, _ in seminar_cells() for name in re.findall(r"torch\.[\w.]+\w", code)}
    assert len(names) > 12
    for name in names:
        found = types.SimpleNamespace(torch=torch)
        for part in name.split("."):
            found = getattr(found, part)
