"""The code of the documents: each block as it stands in its document, in a file of its own."""

import pathlib
import re

HERE = pathlib.Path(__file__).parent
DOCUMENTS = {"service": ("000", "004"), "chapter": ("001",), "seminar": ("003",)}
ORIGINALS = HERE.parents[2] / "shared" / "seeds"  # the whole documents, where they lie beside the checkout


def piece(name: str) -> str:
    """The text of `service/train.py`, for example."""
    return (HERE / name).read_text()


def names() -> list[str]:
    return sorted(f"{folder}/{path.name}" for folder in DOCUMENTS for path in (HERE / folder).iterdir() if path.is_file())


def seminar_cells() -> list[tuple[str, str]]:
    """(code, output that the document shows) of each cell."""
    cells = re.split(r"^In \[.*\]:\n", piece("seminar/cells.txt"), flags=re.MULTILINE)[1:]
    return [(code, output) for code, _, output in (cell.strip().partition("\n\n") for cell in cells)]


def blocks(name: str) -> list[str]:
    """What stands in one place of the document: the piece, or each cell of the seminar and what it shows."""
    return [text for cell in seminar_cells() for text in cell if text] if name == "seminar/cells.txt" else [piece(name)]
