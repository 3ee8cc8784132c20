"""The head of a cell: `#!g2.8` and `#pragma taas --gpus 8`, comments to everybody else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import shapes

OF_PRAGMA = "--of-pragma"
"""Tells the magic that the cell's first line is not the magic's own."""

_SHAPE = re.compile(r"#!\s*([A-Za-z][\w.-]*)\s*$")
_PRAGMA = re.compile(r"#\s*pragma\s+taas\b\s*(.*?)\s*$")


@dataclass(frozen=True)
class Head:
    """What a cell says before its first statement: a shape's name, and the words behind `#pragma taas`."""

    shape: str | None
    pragma: str | None

    @property
    def is_distributed(self) -> bool:
        """A CPU machine's shape alone, like `#!c1.4`, leaves the cell where it is."""
        return self.pragma is not None or (self.shape is not None and shapes.has_gpus(self.shape))


def read_head(lines: list[str]) -> Head:
    """The head of a cell; more `#pragma taas` lines add to the first."""
    shape, pragmas = None, []
    for line in lines:
        if (found := _SHAPE.match(line)) and shape is None and not pragmas:
            shape = found[1]
        elif found := _PRAGMA.match(line):
            pragmas.append(found[1])
        elif line.strip():
            break
    return Head(shape, " ".join(pragmas) if pragmas else None)


def as_magic(lines: list[str]) -> list[str]:
    """An input transformer of IPython: puts `%%taas` above a cell with such a head, and leaves others alone."""
    return [f"%%taas {OF_PRAGMA}\n", *lines] if lines and read_head(lines).is_distributed else lines
