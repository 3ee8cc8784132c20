"""The options of a distributed cell: its own, and those of taas-run, which are handed on."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from . import shapes
from .errors import CellUsage
from .pragma import Head, OF_PRAGMA

_FLAGS = {"--dry-run", "--no-protect", OF_PRAGMA}
_LISTS = {"--no-capture", "--capture", "--pull", "--ranks"}
_VALUES = {"--shape", "--data-shape", "--rank-output"}
_OF_THE_CELL = {
    "--json",
    "--end-with",
    "-t",
    "--tee",
    "--loader",
    "-m",
    "--module",
    "--signals-to-handle",
    "--rdzv-id",
    "--detach",
}
_CPU_MACHINES = {"--cpus", "--data-workers", "--data-hosts"}
_SIZES = ("--gpus", "--nproc-per-node", "--nproc_per_node", "--nnodes")


@dataclass
class CellOptions:
    """`launcher` holds the words for taas-run.

    The cell's own: which names go in and come back, whose output is shown.
    """

    launcher: list[str] = field(default_factory=list)
    shape: shapes.Shape | None = None
    of_pragma: bool = False
    dry_run: bool = False
    protect: bool = True
    rank_output: str = "private"
    no_capture: list[str] = field(default_factory=list)
    capture: list[str] = field(default_factory=list)
    pull: list[str] = field(default_factory=list)
    ranks: list[int] = field(default_factory=lambda: [0])


def parse(line: str, head: Head) -> CellOptions:
    """The options of the magic's line and of the cell's head. Raises CellUsage."""
    words = _split(line) + _split(head.pragma or "")
    options = CellOptions()
    shape, data_shape = head.shape, None
    position = 0
    while position < len(words):
        name, _, value = words[position].partition("=")
        name = name.replace("_", "-") if name.startswith("--") else name
        if name in _LISTS | _VALUES and not value:
            position += 1
            if position == len(words):
                raise CellUsage(f"{name}: a value is missing")
            value = words[position]
        if name == "--shape":
            shape = value
        elif name == "--data-shape":
            data_shape = value
        elif name == "--rank-output":
            _choose_rank_output(options, value)
        elif not _take(options, name, value):
            position = _hand_on(options, words, position, name)
        position += 1
    if shape:
        _add_shape(options, shapes.find(shape))
    if data_shape:
        _add_data_shape(options, shapes.find(data_shape))
    return options


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise CellUsage(f"{text}: {error}") from None


def _take(options: CellOptions, name: str, value: str) -> bool:
    """True for what is the cell's own."""
    if name in _FLAGS:
        options.dry_run |= name == "--dry-run"
        options.protect &= name != "--no-protect"
        options.of_pragma |= name == OF_PRAGMA
    elif name == "--ranks":
        options.ranks = _numbers(value)
    elif name in _LISTS:
        getattr(options, name[2:].replace("-", "_")).extend(filter(None, value.split(",")))
    else:
        return False
    return True


def _choose_rank_output(options: CellOptions, value: str) -> None:
    if value not in ("all", "private", "none"):
        raise CellUsage(f"--rank-output {value}: not one of all, private, none")
    options.rank_output = value
    options.protect &= value != "all"


def _numbers(text: str) -> list[int]:
    try:
        return sorted({int(word) for word in text.split(",")})
    except ValueError:
        raise CellUsage(f"--ranks {text}: not numbers with commas between them, as in 0,1") from None


def _hand_on(options: CellOptions, words: list[str], position: int, name: str) -> int:
    """Takes an option of taas-run with its value; returns where it ends."""
    if name in _OF_THE_CELL:
        raise CellUsage(f"{name}: a cell sets this itself")
    if not name.startswith("-"):
        raise CellUsage(f"{words[position]}: not an option; the program is the cell itself")
    options.launcher.append(words[position])
    if "=" in words[position] or position + 1 == len(words) or words[position + 1].startswith("-"):
        return position
    options.launcher.append(words[position + 1])
    return position + 1


def _add_shape(options: CellOptions, shape: shapes.Shape) -> None:
    options.shape = shape
    given = _names(options.launcher)
    options.launcher += shape.options
    if shape.taken_for and shape.gpus != 0 and not given & set(_SIZES):
        raise CellUsage(shapes.refusal(shape))
    if shape.gpus:
        if "--gpus-per-node" not in given:
            options.launcher += ["--gpus-per-node", str(shape.gpus)]
        if not given & set(_SIZES):
            options.launcher += ["--gpus", str(shape.gpus)]
    if shape.gpus == 0 and shape.cores and given & _CPU_MACHINES:
        _add_workers(options, shape.cores)


def _add_data_shape(options: CellOptions, shape: shapes.Shape) -> None:
    if not _names(options.launcher) & _CPU_MACHINES:
        raise CellUsage(f"--data-shape {shape.name}: only with --cpus N, the number of CPU machines")
    if shape.taken_for or not shape.cores:
        raise CellUsage(
            f"--data-shape {shape.name}: how many cores it has is not known here; --data-cores N says how many data "
            "workers each CPU machine has"
        )
    _add_workers(options, shape.cores)


def _add_workers(options: CellOptions, cores: int) -> None:
    """A CPU machine has a data worker for each core of its shape, whatever this machine has."""
    if "--data-cores" not in _names(options.launcher):
        options.launcher += ["--data-cores", str(cores)]


def _names(words: list[str]) -> set[str]:
    return {word.partition("=")[0].replace("_", "-") for word in words if word.startswith("-")}
