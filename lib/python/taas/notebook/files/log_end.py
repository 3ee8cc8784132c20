"""The last lines of a log file, however large it has become."""

from __future__ import annotations

import os
from pathlib import Path

from ...runtime import own_files
from ..marks import without_marks

_PIECE = 1 << 16
_LONGEST_LINE = 1 << 12
"""Of files whose lines are longer, such as those of progress bars, fewer lines are returned."""


def last_lines(path: Path, count: int) -> list[str]:
    """At most `count` lines; of the first one only the end where it is very long.

    Reads as much as these need. Raises OSError where the path leads to no file of its own.
    """
    with own_files.open_file(str(path)) as file:
        size = file.seek(0, os.SEEK_END)
        most = min(size, _PIECE + count * _LONGEST_LINE)
        length = 0
        while True:
            length = min(most, 2 * length or _PIECE)
            file.seek(size - length)
            lines = without_marks(file.read(length).decode(errors="replace")).splitlines()
            if length == most or len(lines) > count:
                return lines[-count:] if count > 0 else []
