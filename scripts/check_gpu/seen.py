"""Which checks were green on which machine, and when: seen.json beside this file, which is committed."""

import json
import pathlib

from check_gpu.machine import Gpu, Versions
from check_gpu.result import GREEN, Check, Result

FILE = pathlib.Path(__file__).with_name("seen.json")


def read(file: pathlib.Path = FILE) -> dict[str, str]:
    return json.loads(file.read_text())


def record(
    results: list[Result], gpus: list[Gpu], versions: Versions, commit: str, date: str, file: pathlib.Path = FILE
) -> None:
    """What was green takes the place of what was known of it; what was not leaves that as it is."""
    software = f"torch {versions.torch}, NCCL {versions.nccl} ({versions.backend}), commit {commit}"
    where = f"{date} on {len(gpus)} × {gpus[0].name}, {software}"
    seen = read(file) | {result.check.name: where for result in results if result.state == GREEN}
    file.write_text(json.dumps(seen, indent=2, sort_keys=True) + "\n")


def line(check: Check, seen: dict[str, str]) -> str:
    gpus = f" ({check.gpus} GPUs)" if check.gpus > 1 else ""
    when = f"green {seen[check.name]}" if check.name in seen else "not seen green yet"
    return f"{check.name:18} {when}: {check.shows}{gpus}"
