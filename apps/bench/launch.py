"""What a launcher costs: 8 x /bin/true from start to end, side by side, and the memory of taas-run while ranks run."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import measure

SLEEP = ["/bin/sleep", "60"]


def check_counts(commands, folder):
    """Each launcher really starts all processes, and tells when one fails."""
    for name, command in commands.items():
        marks = pathlib.Path(folder) / f"marks-{name}"
        marks.mkdir()
        measure.wall_seconds([*command, "/usr/bin/mktemp", f"{marks}/XXXXXX"], folder)
        count = len(list(marks.iterdir()))
        if count != measure.RANKS:
            sys.exit(f"{name} started {count} processes instead of {measure.RANKS}")
        if measure.start([*command, "/bin/false"], folder).wait() == 0:
            sys.exit(f"{name} says nothing of a rank that failed")


def compare(commands, rounds, folder) -> dict:
    samples = {name: [] for name in commands}
    for number in range(-1, rounds):  # round -1 warms up the disk's cache
        for name in measure.rotated(commands, number):
            took = measure.wall_seconds([*commands[name], "/bin/true"], folder)
            if number >= 0:
                samples[name].append(took)
    return samples


def command_of(pid) -> str:
    return measure.of_process(pid, "comm").strip()


def memory_kilobytes(pid) -> dict:
    """Nothing of a process that has ended."""
    fields = dict(line.split(":", 1) for line in measure.of_process(pid, "status").splitlines())
    return {name: int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM") if name in fields}


def launcher_memory(command, folder) -> list:
    """Memory of each process of the launcher itself, while its ranks run."""
    process = measure.start([*command, *SLEEP], folder)
    try:
        measure.wait_until(
            lambda: [command_of(p) for p in measure.family(process.pid)].count("sleep") == measure.RANKS,
            "all ranks are up",
            process,
        )
        others = [pid for pid in measure.family(process.pid) if command_of(pid) != "sleep"]
        return [memory for pid in others if (memory := memory_kilobytes(pid))]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def linked_torch(program) -> list:
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.strip() for line in libraries if "torch" in line or "c10" in line]


def main():
    options = measure.arguments(__doc__)
    commands = measure.launchers(options.bin)
    with tempfile.TemporaryDirectory() as folder:
        check_counts(commands, folder)
        samples = compare(commands, options.rounds, folder)
        memory = {name: launcher_memory(commands[name], folder) for name in ("taas-run", "torchrun")}
    torch_lines = linked_torch(options.bin / "taas-run")
    if torch_lines:
        sys.exit(f"taas-run links torch: {torch_lines}")
    results = {name: measure.summary(values) for name, values in samples.items()}
    ratios = {name: measure.ratio(samples["taas-run"], values) for name, values in samples.items()}
    rows = [
        [
            name,
            measure.milliseconds(result),
            f"{ratios[name]['median']:.4f} ({ratios[name]['min']:.4f} to {ratios[name]['max']:.4f})",
        ]
        for name, result in results.items()
    ]
    notes = [
        f"memory of {name}: "
        + ", ".join(f"{process['VmHWM'] / 1024:.1f} MB" for process in processes)
        + " (peak RSS of each of its processes)"
        for name, processes in memory.items()
    ]
    measure.report(
        "launch",
        options,
        {"wall_seconds": results, "taas_run_over": ratios, "memory_kilobytes": memory},
        rows,
        ["launcher", "8 × `/bin/true`", "taas-run / this"],
        [*notes, "ldd taas-run: no torch"],
    )


if __name__ == "__main__":
    os.environ.pop("OMP_NUM_THREADS", None)
    measure.run(main)
