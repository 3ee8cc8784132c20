"""A rank that stays: it runs cell after cell in one namespace, as the kernel sends them."""

from __future__ import annotations

import signal
import sys
import types
from typing import Any, Container

from . import display, leave_behind, statements
from .connection import Connection
from .facts import Facts, find_modules_as_the_kernel, load_variables


def stay(connection: Connection, facts: Facts, program: types.ModuleType) -> None:
    """Runs the first cell, and then others until the kernel wants no more, or has gone."""
    rank = _StayingRank(connection, program)
    wanted = None
    while True:
        connection.send_at_end("ended", **rank.run(facts, wanted))
        message = connection.receive()
        if message is None or message["kind"] == "end":
            return
        before = facts.folder
        facts, wanted = Facts.read(message["folder"]), message["wanted"]
        program.__file__ = facts.cell
        sys.argv[:] = [facts.cell]
        find_modules_as_the_kernel(facts)
        sys.path[:] = [facts.folder, *(place for place in sys.path if place != before)]  # for what the cell spawns


class _StayingRank:
    """Between cells an interrupt has no effect: it was for the cell that has just ended."""

    def __init__(self, connection: Connection, program: types.ModuleType) -> None:
        self._connection, self._namespace = connection, program.__dict__
        self._captured: dict[str, Any] = {}
        self._on_interrupt: Any = signal.default_int_handler
        self._is_loaded = False
        self._ignore_interrupts()

    def run(self, facts: Facts, wanted: Container[str] | None) -> dict[str, Any]:
        """What the kernel is told: how the cell ended, and which names it has bound, or deleted."""
        self._is_loaded = False
        self._before: dict[str, int] = {}
        try:
            try:
                signal.signal(signal.SIGINT, self._on_interrupt)
                self._connection.send("begun")
                state = self._run(facts, wanted)
            finally:
                self._ignore_interrupts()
        except KeyboardInterrupt:  # the kernel sends one for a cell: no other comes in between here
            self._ignore_interrupts()
            state = "interrupted"
        after = self._identities()
        bound = [name for name in after if self._before.get(name) != after[name]] if self._is_loaded else []
        modules = [name for name in bound if isinstance(self._namespace[name], types.ModuleType)]
        return {"state": state, "loaded": self._is_loaded, "bound": bound, "modules": modules,
                "gone": [name for name in self._before if name not in after]}

    def _run(self, facts: Facts, wanted: Container[str] | None) -> str:
        try:
            self._captured.update(load_variables(facts, self._namespace, wanted))
            self._before, self._is_loaded = self._identities(), True
            statements.register(facts, self._namespace)
            statements.run(facts, self._namespace)
            leave_behind.send(self._connection, facts, self._captured, self._namespace)
            return "ran"
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, SystemExit) and error.code in (None, 0):
                return "ran"
            # Not on stderr, where taas-run looks for why a rank has ended: this one goes on.
            statements.tell(self._connection, facts, error, sys.__stdout__)
            return "failed"
        finally:
            display.finish()

    def _identities(self) -> dict[str, int]:
        """No references: what a cell deletes is freed at once."""
        return {name: id(value) for name, value in self._namespace.items() if not name.startswith("__")}

    def _ignore_interrupts(self) -> None:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        if before is not signal.SIG_IGN:
            self._on_interrupt = before
