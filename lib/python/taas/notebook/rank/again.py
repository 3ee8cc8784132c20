"""The notebook's variables in a process that is no rank: a data worker, or one that a rank has spawned."""

from __future__ import annotations

import ast
import os
import sys
from typing import Any

from .. import settings
from .facts import Facts, find_modules_as_the_kernel, load_variables

_DEFINING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def restore(namespace: dict[str, Any], file: str) -> None:
    """Fills the module `file` of a cell's folder.

    A data worker seeds torch as the cell does; a spawned process has the cell's own imports, functions and classes as
    well, but does not run it.
    """
    facts = Facts.read(os.path.dirname(os.path.abspath(file)))
    find_modules_as_the_kernel(facts)
    if os.environ.get("TAAS_ROLE") == "data-worker":
        settings.restore(facts["settings"])
        if facts["seed"] is not None:
            import torch

            torch.manual_seed(facts["seed"])
        load_variables(facts, namespace)
        return
    load_variables(facts, namespace)
    _define(facts, namespace)
    if "__mp_main__" in sys.modules:
        sys.modules.setdefault(namespace["__name__"], sys.modules["__mp_main__"])


def _define(facts: Facts, namespace: dict[str, Any]) -> None:
    with open(facts.cell) as file:
        tree = ast.parse(file.read(), facts.cell)
    for statement in tree.body:
        if isinstance(statement, _DEFINING) or _is_constant(statement):
            try:
                exec(compile(ast.Module([statement], []), facts.cell, "exec", dont_inherit=True), namespace)
            except NameError:  # it needs what the cell computes
                continue


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
