"""The head of a cell: `#!g2.8` and `#pragma taas --gpus 8`, comments to everybody else."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tokenize
from dataclasses import dataclass
from typing import Any

from . import shapes

OF_PRAGMA = "--of-pragma"
"""Tells the magic that the cell's first line is not the magic's own."""

_SHAPE = re.compile(r"#!\s*([A-Za-z][\w.-]*)\s*$")
_PRAGMA = re.compile(r"#\s*pragma\s+taas\b\s*(.*?)\s*$", re.IGNORECASE)
_PYTHON_CELLS = ("%%taas", "%%time", "%%timeit", "%%capture", "%%prun")


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
    """The head of a cell, with other comments in it or not; more `#pragma taas` lines add to the first."""
    shape = None
    pragmas: list[Any] = []
    for line in lines:
        if (found := _SHAPE.match(line)) and shape is None and not pragmas:
            shape = found[1]
        elif found := _PRAGMA.match(line):
            pragmas.append(found[1])
        elif _is_code(line):
            break
    return Head(shape, " ".join(pragmas) if pragmas else None)


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def misplaced(text: str) -> int | None:
    """The number of the first line with a `#pragma taas` that is not in the cell's head and so has no effect."""
    first, *body = text.splitlines(True) or [""]
    if not first.startswith("%%"):
        body.insert(0, first)
    elif first.split()[0] not in _PYTHON_CELLS:
        return None
    above = len(text.splitlines()) - len(body)
    end = next((number for number, line in enumerate(body, 1) if _is_code(line)), len(body) + 1)
    with contextlib.suppress(tokenize.TokenError, SyntaxError):  # what has no end; and IPython's own lines
        for token in tokenize.generate_tokens(io.StringIO("".join(body)).readline):
            line, column = token.start
            is_pragma = token.type == tokenize.COMMENT and _PRAGMA.match(token.string)
            if is_pragma and line > end and not token.line[:column].strip():
                return above + line
    return None


def say_misplaced(info: Any) -> None:
    """For IPython's pre_run_cell: a pragma without effect would be noticed by nobody."""
    if number := misplaced(info.raw_cell or ""):
        print(
            f"taas: line {number} of the cell: #pragma taas has no effect here: it belongs above the cell's first "
            "statement",
            file=sys.stderr,
        )


def as_magic(lines: list[str]) -> list[str]:
    """An input transformer of IPython: puts `%%taas` above a cell with such a head, and leaves others alone."""
    return [f"%%taas {OF_PRAGMA}\n", *lines] if lines and read_head(lines).is_distributed else lines
