"""--dry-run: what would go where."""

from __future__ import annotations

from typing import Iterable

from .command import ask, command
from .options import CellOptions
from .variables.capture import Capture
from .view import View

_FOLDER = "<the cell's folder>"


def tell(options: CellOptions, found: Capture, registered: Iterable[str], prepared: str | None, view: View) -> None:
    """Says it, and starts nothing."""
    view.say(ask([*options.launcher, "-m", "taas.notebook.rank", _FOLDER]).rstrip("\n"))
    view.say("command: " + " ".join(command(options, _FOLDER, prepared)))
    for name in found.names:
        view.say(f"captured: {name} ({type(found.values[name]).__name__})")
    view.say(f"captured memory: {found.memory.size} bytes, once for all ranks of a machine")
    for name in registered:
        view.say(f"registered loader: {name}" + (", prepared before the ranks start" if name == prepared else ""))
