"""What a cell shows while it runs: the chosen ranks' output as it comes, and the other ranks' folded below it."""

from __future__ import annotations

import html
import re
import sys
from typing import Any

from .folds import Folds
from .marks import split

_NUMBER = re.compile(r"\d+")
_noted: set[str] = set()


class View:
    """Turns the lines of ranks back into the streams that they were, and puts what came by socket at its place.

    `shell` is the IPython shell, or None, `ranks` those whose output is shown.
    """

    def __init__(self, shell: Any, ranks: list[int]) -> None:
        self._shell, self._ranks = shell, ranks
        self._messages: dict[tuple[int, str], dict[str, Any]] = {}
        self._in_bar: dict[tuple[int, str], bool] = {}
        self._begun: dict[tuple[int, str], bool] = {}
        self._muted: set[tuple[int, str]] = set()
        self._last_stream = ""
        self._folds = Folds(shell)
        self.result: dict[str, Any] | None = None

    def say(self, text: str) -> None:
        """A line of the launcher or of this package."""
        self._write("stderr", text + "\n")

    def note(self, text: str) -> None:
        """A line that is no warning, in small letters; each one once in a kernel, whatever numbers are in it."""
        kind = _NUMBER.sub("", text)
        if kind in _noted:
            return
        _noted.add(kind)
        if self._shell is None:
            return self._write("stdout", text + "\n")
        self.flush()
        self._shell.display_pub.publish({"text/html": f"<small>{html.escape(text)}</small>", "text/plain": text}, {})

    def keep(self, message: dict[str, Any]) -> None:
        """A message that is shown once its mark comes by."""
        self._messages[message["rank"], message["number"]] = message

    def line(self, rank: int, stream: str, text: str, *, progress: bool, is_open: bool, fetch: Any) -> None:
        """A line of a rank, or a part of one. `fetch` takes what the socket has."""
        pieces = split(text)
        for kind, piece in pieces:
            if kind == "mark":
                self._at_mark(rank, stream, piece, fetch)
            elif (rank, stream) not in self._muted:
                self._text(rank, stream, piece, progress)
        ends = not progress and not is_open and pieces[-1][0] == "text"
        if ends and (rank, stream) not in self._muted:
            self._text(rank, stream, "\n", False)
            self._in_bar[rank, stream] = self._begun[rank, stream] = False

    def announce(self, headline: str, world_size: int) -> None:
        """What the run is doing, in one line above its output; nothing when the output is all ranks' anyhow."""
        if world_size > len(self._ranks):
            self._folds.announce(headline)
            self.flush()
            self.update(now=True)

    def update(self, now: bool = False) -> None:
        """Redraws the folds, but not too often."""
        self._folds.draw(now)

    def flush(self) -> None:
        """What was written is sent."""
        sys.stdout.flush()
        sys.stderr.flush()

    def _at_mark(self, rank: int, stream: str, what: str, fetch: Any) -> None:
        if what in ("mute", "unmute"):
            (self._muted.add if what == "mute" else self._muted.discard)((rank, stream))
            return
        fetch()
        if message := self._messages.pop((rank, what), None):
            self._show(rank, message)

    def _text(self, rank: int, stream: str, text: str, progress: bool) -> None:
        key = rank, stream
        if text != "\n" and (progress or self._in_bar.get(key)):
            self._in_bar[key], text = True, "\r" + text
        if rank not in self._ranks:
            return self._folds.add(rank, text)
        if len(self._ranks) > 1 and text != "\n" and (text.startswith("\r") or not self._begun.get(key)):
            text = f"\r[{rank}] {text[1:]}" if text.startswith("\r") else f"[{rank}] {text}"
        self._begun[key] = True
        self._write(stream, text)

    def _write(self, stream: str, text: str) -> None:
        if stream != self._last_stream:  # the kernel sends each of the two when it is time, and not in their order
            self.flush()
            self._last_stream = stream
        (sys.stdout if stream == "stdout" else sys.stderr).write(text)

    def _show(self, rank: int, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if rank not in self._ranks:
            return self._folds.add_bundle(rank, message.get("data", {}))
        self.flush()
        if kind == "result" and rank == self._ranks[0]:
            self.result = message
        elif self._shell is None:
            self._write("stdout", message.get("data", {}).get("text/plain", "") + "\n")
        elif kind == "clear":
            self._shell.display_pub.clear_output(message["wait"])
        else:
            self._shell.display_pub.publish(
                message["data"], message["metadata"], transient=message["transient"], update=message["update"]
            )
