"""What a failed run becomes in the kernel: one exception.

It has the first failing rank's traceback, in the notebook's terms.
"""

from __future__ import annotations

import re
from typing import Any

from .errors import RankFailed
from .folds import numbers

_REFUSED = re.compile(r"ermission denied|cannot be opened")


def failure_of(
    verdict: dict[str, Any],
    world_size: int,
    messages: dict[int, dict[str, Any]],
    cells: dict[str, str],
    protected: str | None,
) -> RankFailed:
    """The exception for the launcher's verdict.

    `messages` are what ranks have said of their own exceptions, `cells` gives the notebook's names of files,
    `protected` is the directory that only rank 0 may write to.
    """
    rank = verdict.get("culprit")
    said = None if rank is None else messages.get(rank)
    if said is None:
        details = [*verdict.get("detail", []), *_endings(verdict)]
        return RankFailed(verdict["summary"], rank=rank, exit_code=verdict["exit_code"], details=tuple(details))
    text = _in_cells(said["traceback"], cells)
    line = f" (line {said['line']} of the cell)" if said.get("line") else ""
    last = said["message"].splitlines()[0] if said["message"] else ""
    headline = f"rank {rank} of {world_size}: {said['type']}{': ' * bool(last)}{last}{line}"
    details = [f"rank {rank} of {world_size} failed{line}:", *text.rstrip("\n").splitlines(), *_endings(verdict)]
    if protected and rank != 0 and _REFUSED.search(said["traceback"]):
        details += [
            f"Only rank 0 may write below {protected}, so that files there have one writer. Three ways:",
            '  write there only if os.environ["RANK"] == "0"; write elsewhere (a temporary folder); or allow it with',
            "  --no-protect for this cell",
        ]
    return RankFailed(
        headline,
        rank=rank,
        exit_code=verdict["exit_code"],
        error_type=said["type"],
        message=said["message"],
        details=tuple(details),
    )


def _endings(verdict: dict[str, Any]) -> list[str]:
    lines = []
    if verdict.get("consequences"):
        lines.append(f"after it failed: {numbers(sorted(verdict['consequences']))}")
    if verdict.get("hint"):
        lines.append(f"hint: {verdict['hint']}")
    if verdict.get("log_path"):
        folder = verdict["log_path"].endswith("/")
        lines.append(f"{'logs' if folder else 'log'}: {verdict['log_path']}")
    return lines


def _in_cells(text: str, cells: dict[str, str]) -> str:
    """`File "/tmp/…/cell.py", line 3` as `Cell In[7], line 3`."""
    return re.sub(r'File "([^"\n]+)"', lambda found: cells.get(found[1], found[0]), text)
