"""The line about the run above a cell's output, and below it, folded, what the ranks have printed that are not shown.

Ranks with the same text are one area.
"""

from __future__ import annotations

import html
import time
import uuid
from typing import Any, NamedTuple

_EVERY_SECONDS = 0.5
_MOST_CHARACTERS = 64 * 1024


class Group(NamedTuple):
    """Ranks with the same output: its end, how many lines it has in all, and how many pictures each has shown."""

    ranks: list[int]
    text: str
    lines: int
    pictures: int


class Folds:
    """Drawn above the cell's output as one output that is updated; nothing where all ranks are shown."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._texts: dict[int, str] = {}
        self._lines_before: dict[int, int] = {}  # of what is not kept
        self._pictures: dict[int, int] = {}
        self._identity = {"display_id": uuid.uuid4().hex}
        self._headline = ""
        self._changed = self._drawn = False
        self._drawn_at = 0.0

    def announce(self, headline: str) -> None:
        """What the run is doing, in one line."""
        self._headline, self._changed = headline, True

    def add(self, rank: int, text: str) -> None:
        """Text as it comes; the last 64 KiB are kept, the log file has all."""
        whole = self._texts.get(rank, "") + text
        dropped, self._texts[rank] = whole[:-_MOST_CHARACTERS], whole[-_MOST_CHARACTERS:]
        self._lines_before[rank] = self._lines_before.get(rank, 0) + dropped.count("\n")
        self._changed = True

    def add_bundle(self, rank: int, data: dict[str, Any]) -> None:
        """Something displayed: its text. Pictures are only counted: those of all ranks make a notebook's file large."""
        if "image/png" in data:
            self._pictures[rank] = self._pictures.get(rank, 0) + 1
        elif "text/plain" in data:
            self.add(rank, data["text/plain"] + "\n")
        self._changed = True

    def draw(self, now: bool) -> None:
        """Publishes what has changed, now or when it is time again."""
        waits = not now and time.monotonic() - self._drawn_at < _EVERY_SECONDS
        if waits or not self._changed or not self._headline or self._shell is None:
            return
        self._shell.display_pub.publish(
            {"text/html": self._html(), "text/plain": self._plain()}, {}, transient=self._identity, update=self._drawn
        )
        self._changed, self._drawn, self._drawn_at = False, True, time.monotonic()

    def groups(self) -> list[Group]:
        """Ranks with the same output together."""
        found: dict[tuple[str, int, int], list[int]] = {}
        for rank in sorted({*self._texts, *self._pictures}):
            text = drawn(self._texts.get(rank, ""))
            lines = self._lines_before.get(rank, 0) + len(text.splitlines())
            found.setdefault((text, lines, self._pictures.get(rank, 0)), []).append(rank)
        return [Group(ranks, *shown) for shown, ranks in found.items()]

    def _html(self) -> str:
        return f"<small>{html.escape(self._headline)}</small>" + "".join(
            f"<details><summary>{_title(group)}</summary><pre>{html.escape(group.text)}</pre></details>"
            for group in self.groups()
        )

    def _plain(self) -> str:
        return "\n".join([self._headline, *map(_title, self.groups())])


def drawn(text: str) -> str:
    """What a terminal would show at last: of a line's states only the newest."""
    return "\n".join(max(line.split("\r")[-1:], key=len) for line in text.rstrip("\n").split("\n"))


def _title(group: Group) -> str:
    lines = _count(group.lines, "line")
    if group.pictures:
        lines += (
            f", {_count(group.pictures, 'picture')} (--ranks {group.ranks[0]} shows "
            f"{'it' if group.pictures == 1 else 'them'})"
        )
    return f"{numbers(group.ranks)}: {lines}" + (f" ×{len(group.ranks)}" if len(group.ranks) > 1 else "")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + "s" * (number != 1)


def numbers(ranks: list[int]) -> str:
    """rank 1, ranks 1-3,5"""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    text = ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
    return f"rank{'s' * (len(ranks) > 1)} {text}"
