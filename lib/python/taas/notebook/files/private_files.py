"""What ranks other than 0 wrote to the project, once the run is over: private_writes.py of ranks has kept it apart."""

from __future__ import annotations

import contextlib
import os
import re
from itertools import chain
from pathlib import Path
from typing import Iterator

from ...runtime import own_files
from ..folds import numbers

_MOST_NAMES = 3


def sort_private_files(run_folder: str, project: str, began: float) -> list[str]:
    """Removes the files that rank 0 has written, too, since `began` (seconds since 1970), and keeps the others.

    Returns a line for each of the two kinds that there is. What ranks have put in the place of their folders is not
    followed.
    """
    dropped: dict[str, list[int]] = {}
    kept: dict[str, list[int]] = {}
    private = Path(run_folder, "private")
    with contextlib.suppress(OSError), _opened(str(private)) as all_ranks:
        for name in sorted(os.listdir(all_ranks)):
            if not re.fullmatch(r"rank-\d+", name):
                continue
            with contextlib.suppress(OSError, RecursionError), _opened(name, all_ranks) as own:
                _sort_rank(own, int(name.removeprefix("rank-")), project, began, dropped, kept)
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=all_ranks)
    with contextlib.suppress(OSError):
        os.rmdir(private)
    lines = []
    if dropped:
        lines.append(f"{_who_wrote_what(dropped)}, too: only what rank 0 wrote was kept")
    if kept:
        lines.append(
            f"{_who_wrote_what(kept)}, but rank 0 did not: see {private}; --no-protect lets every rank write to the "
            "project"
        )
    return lines


@contextlib.contextmanager
def _opened(path: str, dir_fd: int | None = None) -> Iterator[int]:
    folder = own_files.open_folder(path, dir_fd)
    try:
        yield folder
    finally:
        os.close(folder)


def _entries(folder: int) -> Iterator[tuple[str, int, str, bool]]:
    """What is below an open folder of ranks.

    Of each: its place there, an open folder, the name in that, and whether it is a folder, which comes after what is in
    it. Other file systems that are mounted there are left out.
    """
    device = os.fstat(folder).st_dev
    for place, folders, names, within in os.fwalk(".", topdown=False, dir_fd=folder):
        if os.fstat(within).st_dev == device:
            yield from ((place, within, name, False) for name in names)
            yield from ((place, within, name, True) for name in folders)


def _sort_rank(
    own: int, rank: int, project: str, began: float, dropped: dict[str, list[int]], kept: dict[str, list[int]]
) -> None:
    """`own` is the open folder of the rank."""
    for place, within, name, is_folder in _entries(own):
        path = os.path.normpath(os.path.join(place, name))
        of_project = os.path.relpath(path, "project")
        if is_folder:
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=within)
        elif not path.startswith("project/"):
            continue
        elif _is_written(Path(project, of_project), began):
            os.unlink(name, dir_fd=within)
            dropped.setdefault(of_project, []).append(rank)
        else:
            kept.setdefault(of_project, []).append(rank)


def _is_written(path: Path, began: float) -> bool:
    try:
        return path.lstat().st_mtime >= began
    except OSError:
        return False


def _who_wrote_what(ranks_of: dict[str, list[int]]) -> str:
    names = sorted(ranks_of)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{numbers(sorted(set(chain(*ranks_of.values()))))} wrote {', '.join(names[:_MOST_NAMES])}{more}"
