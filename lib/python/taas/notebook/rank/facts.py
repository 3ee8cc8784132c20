"""What the kernel has written into the cell's folder."""

from __future__ import annotations

import importlib
import json
import linecache
import os
import sys
import types
from dataclasses import dataclass
from typing import Any

from ..variables.objects import Receiver


@dataclass(frozen=True)
class Facts:
    """cell.json, by its keys."""

    folder: str
    values: dict[str, Any]

    @classmethod
    def read(cls, folder: str) -> Facts:
        """Raises OSError and ValueError."""
        with open(os.path.join(folder, "cell.json")) as file:
            return cls(folder, json.load(file))

    @property
    def cell(self) -> str:
        """The file of the cell's text."""
        return os.path.join(self.folder, "cell.py")

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


def find_modules_as_the_kernel(facts: Facts) -> None:
    """What the notebook can import, this process can, by the same order of folders."""
    kernels = facts["path"]
    sys.path[:] = [*kernels, *(place for place in sys.path if place not in kernels)]


def load_variables(facts: Facts, namespace: dict[str, Any]) -> dict[str, Any]:
    """The captured variables, under their names. Returns the functions and classes among them, since the cell may give
    these names to others. Raises RuntimeError that names the variable that cannot be loaded."""
    for name, text in facts["sources"].items():
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    for module in facts["modules"]:
        importlib.import_module(module)
    with open(os.path.join(facts.folder, "values"), "rb") as file:
        receiver = Receiver(file, facts["places"], facts["memory"], namespace)
        for name in facts["names"]:
            try:
                namespace[name] = receiver.load()
            except Exception as error:
                raise RuntimeError(
                    f"the captured variable {name} cannot be loaded in this rank: {type(error).__name__}: {error}; "
                    f"define it in the cell, or leave it out with --no-capture {name}"
                ) from error
    return {name: namespace[name] for name in facts["names"] if isinstance(namespace[name], (types.FunctionType, type))}
