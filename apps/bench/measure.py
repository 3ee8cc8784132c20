"""What the benchmarks share.

What they need, timing of whole processes, statistics with their spread, the machine, tables and JSON.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time
from typing import NoReturn

RANKS = 8
RESTART = ("--max-restarts", "1", "--monitor-interval", "0.1")
"""Without the pause that taas-run makes after a failure at the start; torchrun's default."""
DISTRIBUTIONS = {"tensorflow": "tensorflow-cpu"}  # what pip calls a module, where it is not the module's own name


def complain(said: str) -> NoReturn:
    """Ends the benchmark with one line: something that it needs is not there."""
    print(f"{pathlib.Path(sys.argv[0]).name}: {said}", file=sys.stderr)
    sys.exit(2)


def need(*modules: str, python: str | None = None):
    """Before anything is measured: ends the benchmark unless an interpreter, by default this one, has these modules."""
    if python in (None, sys.executable):
        missing = [name for name in modules if not importlib.util.find_spec(name)]
    else:
        ask = "import importlib.util as u, sys; print(*(name for name in sys.argv[1:] if not u.find_spec(name)))"
        try:
            missing = subprocess.run(
                [python, "-c", ask, *modules], capture_output=True, text=True, check=True
            ).stdout.split()
        except (OSError, subprocess.CalledProcessError) as error:
            complain(f"{python} is no interpreter of Python that works ({error})")
    if missing:
        python = python or sys.executable
        install = " ".join(DISTRIBUTIONS.get(name, name) for name in missing)
        complain(
            f"{python} has no {' and no '.join(missing)}: {python} -m pip install {install}, or use another interpreter"
        )


def need_root(what: str):
    if os.geteuid() != 0:
        complain(f"{what} needs root: run it with sudo")


def run(main):
    """main(), in which a program that is missing or that fails is one line instead of a traceback of the benchmark."""
    try:
        main()
    except FileNotFoundError as error:
        complain(
            f"{error.filename}: not there; a release build has the programs, and --bin or --package may name another "
            "build"
        )
    except subprocess.CalledProcessError as error:
        said = "".join(
            text if isinstance(text, str) else text.decode(errors="replace") for text in (error.stderr,) if text
        )
        last = said.strip().splitlines()[-1:]
        sys.exit(": ".join([f"{' '.join(map(str, error.cmd))}: exit status {error.returncode}", *last]))
    except subprocess.TimeoutExpired as error:
        sys.exit(f"{' '.join(map(str, error.cmd))}: not done within {error.timeout:g} s")


def parser(description: str | None) -> argparse.ArgumentParser:
    """With the options that all benchmarks have; for parsed()."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"), help="folder of taas-run"
    )
    parser.add_argument("--rounds", type=int, default=9, help="each launcher once a round, in rotating order")
    parser.add_argument("--json", type=pathlib.Path, help="where the results go")
    return parser


def parsed(options_parser: argparse.ArgumentParser) -> argparse.Namespace:
    options = options_parser.parse_args()
    options.bin = options.bin.resolve()
    return options


def arguments(description: str) -> argparse.Namespace:
    return parsed(parser(description))


def launchers(bin_folder: pathlib.Path) -> dict:
    """The launchers to compare: name -> command that the program and its arguments follow. RANKS processes each."""
    need("torch")
    ranks = str(RANKS)
    result = {
        "taas-run": [str(bin_folder / "taas-run"), "--nproc-per-node", ranks, "--no-python"],
        "torchrun": [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", ranks, "--no-python"],
        "spawn_loop": [str(bin_folder / "spawn_loop"), ranks],
    }
    if shutil.which("mpirun"):
        result["mpirun"] = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", ranks]
    return result


def start(command, folder) -> subprocess.Popen:
    return subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def wall_seconds(command, folder, expected: int = 0) -> float:
    """Time of a whole process from its start to its reaping; a wrong exit status is no result."""
    began = time.perf_counter()
    status = start(command, folder).wait()
    took = time.perf_counter() - began
    if status != expected:
        sys.exit(f"{' '.join(map(str, command))}: exit status {status}, expected {expected}")
    return took


def rotated(names, round_number: int) -> list:
    """Another one is first in each round, so that none always runs in the wake of the same other."""
    names = list(names)
    cut = round_number % len(names)
    return names[cut:] + names[:cut]


def summary(samples) -> dict:
    return {"median": statistics.median(samples), "min": min(samples), "max": max(samples), "samples": samples}


def ratio(numerators, denominators) -> dict:
    """Of the paired samples of each round."""
    return summary([a / b for a, b in zip(numerators, denominators, strict=True)])


def milliseconds(result: dict) -> str:
    return f"{result['median'] * 1e3:.1f} ms ({result['min'] * 1e3:.1f} to {result['max'] * 1e3:.1f})"


def wait_until(condition, what: str, process: subprocess.Popen, seconds: float = 60):
    """Until a process has brought something about."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            sys.exit(f"{what}: {process.args[0]} ended with {process.returncode} before")
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(0.001)


def of_process(pid: int, name: str) -> str:
    """A file of its folder below /proc; nothing where it has ended, as it may at any time."""
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(pid: int) -> list:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for thread in threads for child in of_process(pid, f"task/{thread}/children").split()]


def family(pid: int) -> list:
    """The process and all that descend from it."""
    return [pid] + [member for child in children(pid) for member in family(child)]


def pss_bytes(pid: int) -> int:
    """Its memory, and its part of what it shares with others; 0 where it has ended."""
    lines = of_process(pid, "smaps_rollup").splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def announced(process: subprocess.Popen) -> str:
    """The first line of a process's output, by which it says that it is ready."""
    line = process.stdout.readline().strip()
    if not line:
        sys.exit(f"{' '.join(map(str, process.args))}: ended with {process.wait()} before it was ready")
    return line


def machine() -> dict:
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in open("/proc/cpuinfo", encoding="utf-8")
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": memory,
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release()["PRETTY_NAME"],
        "load_before": os.getloadavg()[0],
    }


def versions() -> dict:
    def first_line(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]

    result = {
        "python": platform.python_version(),
        "torch": first_line(sys.executable, "-c", "import importlib.metadata as m; print(m.version('torch'))"),
    }
    if shutil.which("mpirun"):
        result["mpirun"] = first_line("mpirun", "--version")
    return result


def report(name: str, options, results: dict, rows: list, header: list, notes: list):
    """Prints the table and writes the JSON."""
    facts = {"machine": machine(), "versions": versions()}
    print(f"{name}: {options.rounds} rounds; {facts['machine']}; {facts['versions']}")
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    for note in notes:
        print(note)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        content = {"benchmark": name, "rounds": options.rounds, "ranks": RANKS, **facts, "results": results}
        options.json.write_text(json.dumps(content, indent=1) + "\n")
