"""What a wheel costs at start: `taas-run --version` and 8 x /bin/true.

By the program of a build folder, by the one that pip installs from a wheel, and by an entry point in Python that
executes the same program, as other packages have it.

    pip wheel . --no-deps -w dist; .venv/bin/python apps/bench/wheel.py dist/taas_run-*.whl
"""

import pathlib
import subprocess
import sys
import tempfile
import venv

import measure

ENTRY_POINT = """#!{python}
import os, sys
if __name__ == "__main__":
    os.execv("{program}", ["{program}", *sys.argv[1:]])
"""


def install(wheel: str, folder: pathlib.Path) -> pathlib.Path:
    """The bin folder of an environment that has nothing but the wheel."""
    venv.create(folder, with_pip=False, symlinks=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q", "--no-deps", wheel],
        check=True,
    )
    shim = folder / "bin/entry-point"
    shim.write_text(ENTRY_POINT.format(python=folder / "bin/python", program=folder / "bin/taas-run"))
    shim.chmod(0o755)
    return folder / "bin"


def compare(programs: dict, arguments: list, rounds: int, folder) -> dict:
    samples = {name: [] for name in programs}
    for number in range(-1, rounds):  # round -1 warms up the disk's cache
        for name in measure.rotated(programs, number):
            took = measure.wall_seconds([programs[name], *arguments], folder)
            if number >= 0:
                samples[name].append(took)
    return samples


def main() -> None:
    wheel = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].endswith(".whl") else sys.exit(__doc__)
    options = measure.arguments(__doc__)
    measure.need("pip")
    what = {
        "--version": ["--version"],
        "8 × `/bin/true`": ["--nproc-per-node", str(measure.RANKS), "--no-python", "/bin/true"],
    }
    results, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        environment = install(wheel, pathlib.Path(folder) / "venv")
        programs = {
            "build": options.bin / "taas-run",
            "wheel": environment / "taas-run",
            "entry point in Python": environment / "entry-point",
        }
        for title, arguments in what.items():
            samples = compare(programs, arguments, options.rounds, folder)
            for name, values in samples.items():
                results[f"{title}, {name}"] = measure.summary(values)
                over = measure.ratio(values, samples["build"])
                rows.append(
                    [
                        title,
                        name,
                        measure.milliseconds(measure.summary(values)),
                        f"{over['median']:.2f} ({over['min']:.2f} to {over['max']:.2f})",
                    ]
                )
    measure.report("wheel", options, results, rows, ["command", "program", "time", "this / build"], [])


if __name__ == "__main__":
    measure.run(main)
