"""The statements of a cell in a rank, and what the kernel is told of an exception in them."""

from __future__ import annotations

import ast
import os
import sys
import traceback
from typing import Any, TextIO

from . import display
from .connection import Connection
from .facts import Facts

_OF_FUTURE = 0x1FF0000
"""The flags of `from __future__ import …` in a code object."""


def register(facts: Facts, namespace: dict[str, Any]) -> None:
    """The captured loaders that taas.register was called with."""
    if facts["registered"]:
        import taas

        for name, asked_for in facts["registered"].items():
            taas.register(namespace[name], **asked_for)


def run(facts: Facts, namespace: dict[str, Any]) -> None:
    """The statements, and the last one's value if that is an expression without a semicolon behind it."""
    with open(facts.cell) as file:
        text = file.read()
    tree = ast.parse(text, facts.cell)
    last: ast.expr | None = None
    if tree.body and isinstance(end := tree.body[-1], ast.Expr) and not _is_silent(text):
        last = end.value
        del tree.body[-1]
    code = compile(tree, facts.cell, "exec", dont_inherit=True)
    exec(code, namespace)
    if last is not None:
        expression = ast.Expression(last)
        value = eval(compile(expression, facts.cell, "eval", flags=code.co_flags & _OF_FUTURE, dont_inherit=True), namespace)
        if value is not None:
            display.result(value)


def _is_silent(text: str) -> bool:
    lines = [line.partition("#")[0].rstrip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line), "").endswith(";")


def tell(connection: Connection, facts: Facts, error: BaseException, log: TextIO | None) -> None:
    """To the kernel, and as Python does it on `log`, one of this process' own streams, from which it goes into a log file but is
    not shown."""
    own = os.path.dirname(os.path.abspath(__file__))
    frames = error.__traceback__
    while frames and os.path.dirname(frames.tb_frame.f_code.co_filename) == own:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames))
    inside = [frame.lineno for frame in traceback.extract_tb(frames) if frame.filename == facts.cell]
    heard = connection.send("failure", type=type(error).__name__, message=str(error), traceback=text,
                            line=inside[-1] if inside else None)
    sys.stdout.flush()
    connection.mark("mute", log if heard else None)
    print(text, end="", file=log, flush=True)
    connection.mark("unmute", log if heard else None)
