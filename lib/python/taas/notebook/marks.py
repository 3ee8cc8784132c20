"""Marks in a rank's own output, invisible on a terminal: between which lines something belongs that came by socket."""

from __future__ import annotations

import re

_MARK = re.compile(r"\x1b\]taas;(\w+)\x1b\\")


def mark(what: str) -> str:
    """A line of its own. `what` is a message's number, or one of mute and unmute."""
    return f"\x1b]taas;{what}\x1b\\\n"


def split(text: str) -> list[tuple[str, str]]:
    """The pieces of a line of output: ("text", …) and ("mark", …).

    A line that ends with a mark has no end of its own.
    """
    pieces = []
    position = 0
    for found in _MARK.finditer(text):
        if found.start() > position:
            pieces.append(("text", text[position : found.start()]))
        pieces.append(("mark", found[1]))
        position = found.end()
    if position < len(text) or not pieces:
        pieces.append(("text", text[position:]))
    return pieces


def without_marks(text: str) -> str:
    """For log files that are shown."""
    return re.sub(_MARK.pattern + "\n?", "", text)
