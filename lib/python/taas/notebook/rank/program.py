"""A rank's life: becomes the cell's main program, runs it, and tells the kernel how it ended."""

from __future__ import annotations

import ast
import atexit
import builtins
import importlib.machinery
import os
import signal
import sys
import traceback
import types
from typing import Any

from .. import settings
from ..files.folder import MODULE
from . import display, download_once, leave_behind, private_writes
from .connection import Connection
from .facts import Facts, find_modules_as_the_kernel, load_variables

_OF_FUTURE = 0x1FF0000
"""The flags of `from __future__ import …` in a code object."""


def main(folder: str) -> None:
    """Never returns normally when the cell fails: exits with code 1, or as the cell has asked for."""
    facts = _facts(folder)
    connection = Connection(facts["socket"])
    output = os.environ.get("TAAS_OUTPUT_DIR", "")
    connection.send("hello", folder=_run_folder(output), run=os.environ.get("TAAS_RUN_ID", ""))
    if facts["apart"] and os.environ.get("RANK", "0") != "0":
        private_writes.install(facts["apart"], output)
    download_once.install()
    program = _become_main(facts)
    display.install(connection)
    try:
        settings.restore(facts["settings"])
        captured = load_variables(facts, program.__dict__)
        _register(facts, program.__dict__)
        _run(facts, program.__dict__)
        leave_behind.send(connection, facts, captured, program.__dict__)
    except KeyboardInterrupt:
        _end_at_once()
    except Exception as error:
        _tell(connection, facts, error)
        sys.exit(1)
    finally:
        display.finish()


def _facts(folder: str) -> Facts:
    """Ends with one line where another machine's files are not seen."""
    try:
        return Facts.read(folder)
    except FileNotFoundError:
        sys.exit(
            f"{os.uname().nodename} does not see the cell's folder {folder}: start the kernel in a folder that "
            "all machines share, or go there with %cd"
        )


def _end_at_once() -> None:
    """The user waits: what was registered for the end is done, but torch is not taken down piece by piece."""
    try:
        display.finish()
        atexit._run_exitfuncs()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + signal.SIGINT)


def _no_input(*_: Any) -> str:
    """In place of input()."""
    raise EOFError("ranks have no keyboard: call input() in a cell of its own, whose variable this cell then reads")


def _run_folder(output: str) -> str:
    """The launcher's folder of this run, which holds the output of rank 0; other ranks may have one of their own."""
    return os.path.dirname(os.path.abspath(output)) if output and os.environ.get("RANK", "0") == "0" else ""


def _become_main(facts: Facts) -> types.ModuleType:
    """A main module of its own, as for a script; as a module it can be imported by processes that the cell spawns."""
    find_modules_as_the_kernel(facts)
    program = types.ModuleType("__main__")
    program.__file__ = facts.cell
    vars(program)["__builtins__"] = builtins
    builtins.input = _no_input
    program.__spec__ = importlib.machinery.ModuleSpec(MODULE, None, origin=facts.cell)
    sys.modules["__main__"] = sys.modules[MODULE] = program
    sys.argv[:] = [facts.cell]
    return program


def _register(facts: Facts, namespace: dict[str, Any]) -> None:
    if facts["registered"]:
        import taas

        for name, asked_for in facts["registered"].items():
            taas.register(namespace[name], **asked_for)


def _run(facts: Facts, namespace: dict[str, Any]) -> None:
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
        value = eval(
            compile(expression, facts.cell, "eval", flags=code.co_flags & _OF_FUTURE, dont_inherit=True), namespace
        )
        if value is not None:
            display.result(value)


def _is_silent(text: str) -> bool:
    lines = [line.partition("#")[0].rstrip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line), "").endswith(";")


def _tell(connection: Connection, facts: Facts, error: Exception) -> None:
    """On stderr as Python does it, which goes into the log file but is not shown, and to the kernel."""
    own = os.path.dirname(os.path.abspath(__file__))
    frames = error.__traceback__
    while frames and os.path.dirname(frames.tb_frame.f_code.co_filename) == own:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames))
    inside = [frame.lineno for frame in traceback.extract_tb(frames) if frame.filename == facts.cell]
    heard = connection.send(
        "failure", type=type(error).__name__, message=str(error), traceback=text, line=inside[-1] if inside else None
    )
    sys.stdout.flush()
    connection.mark("mute", sys.stderr if heard else None)
    print(text, end="", file=sys.stderr, flush=True)
    connection.mark("unmute", sys.stderr if heard else None)
