"""Shapes of machines, like `g2.8`: how many GPUs a node has, and which options of taas-run lead to such nodes.

Read from `~/.config/taas/shapes.toml` and, before it, from `taas-shapes.toml` in the working directory or above it:

    ["g2.8"]
    gpus = 8                        # on each node; 0: a CPU machine
    cores = 32                      # data workers on each, where it is a CPU machine
    options = ["--slurm", "--partition", "a100"]
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

from .errors import CellUsage

_KNOWN_GPUS = {
    "g1.1": 1,
    "g1.2": 2,
    "g1.4": 4,
    "g2.mig": 1,
    "g2.1": 1,
    "g2.2": 2,
    "g2.4": 4,
    "g2.8": 8,
    "c1.4": 0,
    "c1.8": 0,
    "c1.32": 0,
    "c1.80": 0,
}
_KNOWN_CORES = {"c1.4": 4, "c1.8": 8, "c1.32": 32, "c1.80": 80}
_FAMILY_AND_SIZE = re.compile(r"([a-zA-Z]+)\d*\.(\d+)$")
PROJECT_FILE = "taas-shapes.toml"


@dataclass(frozen=True)
class Shape:
    """`gpus` and `cores` of each node, None where only the machine knows.

    `taken_for` says what an unknown name was taken for.
    """

    name: str
    gpus: int | None
    options: tuple[str, ...] = ()
    taken_for: str = ""
    cores: int | None = None


def find(name: str) -> Shape:
    """The shape of that name: from the files, a known one, or what the name looks like.

    Raises CellUsage for a wrong file.
    """
    tables = list(_tables())
    for written in dict.fromkeys([name, name.lower()]):
        for path, table in tables:
            if written in table:
                return _shape(written, table[written], path)
        if written in _KNOWN_GPUS:
            return Shape(written, _KNOWN_GPUS[written], cores=_KNOWN_CORES.get(written))
    return _guessed(name)


def has_gpus(name: str) -> bool:
    """False for a CPU machine. Asked for every cell, so a wrong file is no error yet."""
    try:
        return find(name).gpus != 0
    except CellUsage:
        return True


def refusal(shape: Shape) -> str:
    """Why a cell that names an unknown shape, and not how many ranks there are to be, does not run."""
    names = [name for _, table in _tables() for name in table]
    known = ", ".join(dict.fromkeys([*names, *_KNOWN_GPUS]))
    return (
        f"unknown shape {shape.name}: say how many GPUs the cell wants, as in #pragma taas --gpus 8, or describe "
        f'the shape in a table ["{shape.name}"] in {_user_file()}; known are {known}'
    )


def _guessed(name: str) -> Shape:
    """A first letter c is for CPU machines, and the number behind the dot is the size: so the known ones are called."""
    how_to = f'; a table ["{name}"] in {_user_file()} says otherwise'
    found = _FAMILY_AND_SIZE.match(name)
    if found and found[1].lower().startswith("c"):
        return Shape(
            name,
            0,
            taken_for=f"unknown shape {name}: taken for CPU machines without GPUs{how_to}",
            cores=int(found[2]) or None,
        )
    if found and int(found[2]) > 0:
        size = int(found[2])
        return Shape(
            name, size, taken_for=f"unknown shape {name}: taken for nodes with {size} GPU{'s' * (size > 1)}{how_to}"
        )
    return Shape(name, None, taken_for=f"unknown shape {name}: taken for this machine as it is{how_to}")


def _shape(name: str, values: Any, path: Path) -> Shape:
    known = {"gpus": int, "cores": int, "options": list}
    if not isinstance(values, dict):
        raise CellUsage(f'{path}: {name} is not a table; write ["{name}"] above its values')
    for key, value in values.items():
        if key not in known:
            raise CellUsage(f"{path}: {name} has {key!r}; known are: {', '.join(known)}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise CellUsage(
                f"{path}: {key} of {name} is {value!r}, not a {'number' if known[key] is int else 'list of texts'}"
            )
    if values.get("cores", 1) < 1:
        raise CellUsage(f"{path}: cores of {name} is {values['cores']}: at least 1 is needed")
    gpus = values.get("gpus", _guessed(name).gpus)
    cores = values.get("cores", _KNOWN_CORES.get(name.lower(), _guessed(name).cores))
    return Shape(name, gpus, tuple(str(option) for option in values.get("options", ())), cores=cores)


def _tables() -> Iterator[tuple[Path, dict[str, Any]]]:
    here = Path.cwd()
    for path in [*(folder / PROJECT_FILE for folder in (here, *here.parents)), _user_file()]:
        if path.is_file():
            yield path, _read(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:
        raise CellUsage(f"{path} cannot be read: shapes of one's own need Python 3.11") from None
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CellUsage(f"{path} cannot be read: {error}") from None


def _user_file() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(folder) / "taas" / "shapes.toml"
