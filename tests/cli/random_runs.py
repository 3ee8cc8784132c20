"""What random_stops.py, random_publishing.py and random_nodes.py share: runs of one number each, several at a time."""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # who imports this finds waiting.py and free_port.py
FOREIGN = ("PET_", "SLURM_", "TORCHELASTIC_", "TAAS_")


def environment(**more) -> dict:
    """Of this process, without what belongs to another run, and with this interpreter first."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**own, "PATH": f"{pathlib.Path(sys.executable).parent}:{own['PATH']}", **more}


def send(pid: int, number: int):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it may just have ended


def agent_of(launcher: subprocess.Popen):
    """The launcher is its keeper. None where the run has ended."""
    try:
        children = pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def end(launcher: subprocess.Popen):
    if launcher.poll() is None:
        launcher.kill()
        launcher.wait()


def judged(run, numbers, at_once: int, say=lambda text: None) -> list:
    """(plan, what was wrong) of each, as `run` gives them for a number."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        results = []
        for plan, wrong in pool.map(run, numbers):
            results.append((plan, wrong))
            for line in wrong:
                say(f"{plan}: {line}")
        return results


def parser(description: str, runs: int, at_once: int) -> argparse.ArgumentParser:
    """With the options that all have: see numbers_of()."""
    found = argparse.ArgumentParser(description=description.splitlines()[0])
    found.add_argument("--runs", type=int, default=runs)
    found.add_argument("--first", type=int, default=0, help="number of the first run: one that failed is repeated so")
    found.add_argument("--at-once", type=int, default=at_once)
    return found


def numbers_of(options: argparse.Namespace) -> range:
    return range(options.first, options.first + options.runs)


def print_at_once(text: str):
    print(text, flush=True)
