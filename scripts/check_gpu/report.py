"""The report: Markdown that can be pasted as it is."""

from check_gpu.machine import Gpu, Versions
from check_gpu.result import GREEN, RED, SKIPPED, Result

MARKS = {GREEN: "🟢", RED: "🔴", SKIPPED: "⚪"}


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def table(header: list[str], rows: list[list]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell(str(value)) for value in line) + " |" for line in lines)


def line(result: Result) -> str:
    """One line for the console, as it comes."""
    return f"{MARKS[result.state]} {result.check.name}: {result.seen} ({result.seconds:.0f} s)"


def count(results: list[Result]) -> str:
    return ", ".join(f"{sum(result.state == state for result in results)} {state}" for state in (GREEN, RED, SKIPPED))


def machine_table(gpus: list[Gpu], versions: Versions, system: str, commit: str) -> str:
    kinds = {}
    for gpu in gpus:
        kinds.setdefault((gpu.name, gpu.mebibytes), []).append(gpu.index)
    names = ", ".join(
        f"{len(indices)} × {name} ({mebibytes / 1024:.0f} GiB)" for (name, mebibytes), indices in kinds.items()
    )
    rows = [
        ["GPUs", names],
        ["driver", gpus[0].driver],
        ["CUDA of torch", versions.cuda],
        ["torch", versions.torch],
        ["NCCL", versions.nccl],
        ['"nccl" in Python', versions.backend],
        ["system", system],
        ["commit", commit],
    ]
    return table(["", ""], rows)


def render(
    results: list[Result], gpus: list[Gpu], versions: Versions, system: str, commit: str, topology: str, date: str
) -> str:
    rows = [
        [MARKS[result.state], result.check.name, result.check.shows, result.seen, f"{result.seconds:.0f}"]
        for result in results
    ]
    parts = [
        f"# GPU check, {date}: {count(results)}",
        machine_table(gpus, versions, system, commit),
        table(["", "check", "shows", "seen", "s"], rows),
    ]
    parts += [f"## {result.check.name}\n\n{result.details.strip()}" for result in results if result.details.strip()]
    parts.append(f"## Topology\n\n```\n{topology}\n```")
    return "\n\n".join(parts) + "\n"


def exit_code(results: list[Result]) -> int:
    return 1 if any(result.state == RED for result in results) else 0
