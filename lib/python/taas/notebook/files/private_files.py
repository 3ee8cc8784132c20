"""What ranks other than 0 wrote to the project, once the run is over: private_writes.py of ranks has kept it apart."""

from __future__ import annotations

import contextlib
import os
from itertools import chain
from pathlib import Path

from ..folds import numbers

_MOST_NAMES = 3


def sort_private_files(run_folder: str, project: str, began: float) -> list[str]:
    """Removes the files that rank 0 has written, too, since `began` (seconds since 1970), and keeps the others. Returns a line for
    each of the two kinds that there is."""
    dropped: dict[str, list[int]] = {}
    kept: dict[str, list[int]] = {}
    private = Path(run_folder, "private")
    for folder in sorted(private.glob("rank-*")):
        rank = int(folder.name.removeprefix("rank-"))
        for path in _files_below(folder / "project"):
            name = str(path.relative_to(folder / "project"))
            if _is_written(Path(project, name), began):
                path.unlink()
                dropped.setdefault(name, []).append(rank)
            else:
                kept.setdefault(name, []).append(rank)
        _remove_empty(folder)
    _remove_empty(private)
    lines = []
    if dropped:
        lines.append(f"{_who_wrote_what(dropped)}, too: only what rank 0 wrote was kept")
    if kept:
        lines.append(f"{_who_wrote_what(kept)}, but rank 0 did not: see {private}; --no-protect lets every rank write to the project")
    return lines


def _files_below(folder: Path) -> list[Path]:
    return [Path(place, name) for place, _, names in os.walk(folder) for name in names]


def _is_written(path: Path, began: float) -> bool:
    try:
        return path.lstat().st_mtime >= began
    except OSError:
        return False


def _remove_empty(folder: Path) -> None:
    for place, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(place)


def _who_wrote_what(ranks_of: dict[str, list[int]]) -> str:
    names = sorted(ranks_of)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{numbers(sorted(set(chain(*ranks_of.values()))))} wrote {', '.join(names[:_MOST_NAMES])}{more}"
