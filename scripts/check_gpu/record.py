"""What was green, and when: on this machine, in a file in the user's cache folder, which apps/train/graph_choice.cpp reads as well; and
elsewhere, on machines of ours, in a file beside this one."""

import os
import pathlib

from check_gpu.machine import Gpu, Versions
from check_gpu.result import GREEN, RED, Check, Result

ALL = "all"
ELSEWHERE = pathlib.Path(__file__).with_name("seen.tsv")


def path() -> pathlib.Path:
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "taas" / "check-gpu"


def _lines(file: pathlib.Path) -> list[list[str]]:
    try:
        return [line.split("\t") for line in file.read_text().splitlines()]
    except OSError:
        return []


def keep(results: list[Result], checks: list[Check], gpus: list[Gpu], versions: Versions, date: str) -> None:
    """The last time of each check; of all together where none was red and none was left out."""
    names = [result.check.name for result in results if result.state == GREEN]
    red = [result.check.name for result in results if result.state == RED]
    if names and not red and len(results) == len(checks):
        names.append(ALL)
    seen = [date, gpus[0].driver, versions.torch, versions.nccl, f"{len(gpus)} x {gpus[0].name}"]
    kept = [line for line in _lines(path()) if line[0] not in (*names, *red) and not (red and line[0] == ALL)]
    path().parent.mkdir(parents=True, exist_ok=True)
    path().write_text("".join("\t".join(line) + "\n" for line in [*kept, *([name, *seen] for name in names)]))


def last_seen(check: Check) -> str:
    """For --list."""
    for file, where in ((path(), "green on"), (ELSEWHERE, "never green here; elsewhere on")):
        line = next((line for line in _lines(file) if line[0] == check.name and len(line) == 6), None)
        if line:
            return f"{where} {line[1]}: {line[5]}, driver {line[2]}, torch {line[3]}, NCCL {line[4]}"
    return "never green"
