"""A rank's life: becomes the cell's main program, runs it, and tells the kernel how it ended."""

from __future__ import annotations

import atexit
import builtins
import importlib.machinery
import os
import signal
import sys
import types
from typing import Any

from ..files.folder import MODULE
from . import display, download_once, leave_behind, private_writes, statements
from .connection import Connection
from .facts import Facts, find_modules_as_the_kernel, load_variables
from .staying import stay


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
    if facts["stays"]:
        return stay(connection, facts, program)
    try:
        captured = load_variables(facts, program.__dict__)
        statements.register(facts, program.__dict__)
        statements.run(facts, program.__dict__)
        leave_behind.send(connection, facts, captured, program.__dict__)
    except KeyboardInterrupt:
        _end_at_once()
    except Exception as error:
        statements.tell(connection, facts, error, sys.stderr)
        sys.exit(1)
    finally:
        display.finish()


def _facts(folder: str) -> Facts:
    """Ends with one line where another machine's files are not seen."""
    try:
        return Facts.read(folder)
    except FileNotFoundError:
        sys.exit(f"{os.uname().nodename} does not see the cell's folder {folder}: start the kernel in a folder that "
                 "all machines share, or go there with %cd")


def _end_at_once() -> None:
    """The user waits: what was registered for the end is done, but a torch with its groups is not taken down piece by piece."""
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
