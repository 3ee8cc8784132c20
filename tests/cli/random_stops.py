"""Runs that are stopped, killed or frozen at random moments while ranks save: `random_stops.py --runs 300 --at-once 4`.

Each run is drawn from its number: how its ranks save (see stopping_rank.py), whether a shell wraps them, they have
DataLoader workers or are preloaded, and what befalls the run. It is judged by what has to hold then: which saves are
whole, that no process is left, and that no published file is torn. TAAS_RUN names the launcher, and may be another
release for comparison.
"""

import dataclasses
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from random_runs import (
    HERE,
    end,
    environment,
    judged,
    numbers_of,
    parser,
    print_at_once,
    send,
)
from waiting import DEADLINE_SECONDS, wait_until

RANKS = 2
WHOLE = 20 * 16 * 256  # bytes of a save, as stopping_rank.py writes it
MARK = "RANDOM_STOPS_FOLDER"
WRAPPER = '#!/bin/bash\npython -u "$@"; code=$?; exit $code\n'

SHAPES = ("plain", "wrapped", "workers", "wrapped workers")
WAYS = (("handler", 1), ("handler", 8), ("raises", 1), ("raises", 8), ("flag", 1), ("polls", 1))
# What befalls the run; after the last three nobody can save.
EVENTS = (
    "stop",
    "stop",
    "stop",
    "rank killed",
    "leader killed",
    "rank frozen",
    "agent frozen",
    "stop twice",
    "keeper killed",
    "agent killed",
)
HOPELESS = ("stop twice", "keeper killed", "agent killed")


@dataclasses.dataclass
class Plan:
    number: int
    shape: str
    way: str
    seconds: float
    preload: bool
    event: str
    signal: int
    victim: int
    moment: float

    @property
    def expected(self) -> list:
        """Ranks whose save has to be whole."""
        if self.event in HOPELESS:
            return []
        if self.event not in ("rank killed", "leader killed"):
            return list(range(RANKS))
        if self.way == "polls":
            return []  # a failure asks for no checkpoint: there is no file to look for
        others = [rank for rank in range(RANKS) if rank != self.victim]
        # A program whose shell was killed is told as the other ranks are.
        return list(range(RANKS)) if self.event == "leader killed" and "wrapped" in self.shape else others

    def __str__(self):
        return (
            f"{self.number}: {self.shape}, {self.way} {self.seconds} s, "
            f"{'preloaded' if self.preload else 'not preloaded'}, "
            f"{self.event} by {signal.Signals(self.signal).name}, rank {self.victim}, after {self.moment:.2f} s"
        )


def draw(number: int, with_torch: bool) -> Plan:
    rng = random.Random(number)
    shape = rng.choice(SHAPES if with_torch else SHAPES[:2])
    way, seconds = rng.choice(WAYS)
    return Plan(
        number,
        shape,
        way,
        seconds,
        rng.random() < 0.5 and "wrapped" not in shape,
        rng.choice(EVENTS),
        rng.choice((signal.SIGTERM, signal.SIGTERM, signal.SIGINT)),
        rng.randrange(RANKS),
        rng.random(),
    )


def marked(folder: pathlib.Path) -> list:
    """Processes of this run that live."""
    entry = f"{MARK}={folder}".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            ended = path.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
            if not ended and entry in path.joinpath("environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except (OSError, IndexError):
            pass
    return found


def child_of(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def leader_of(pid: int) -> int:
    return os.getpgid(pid)


def command(plan: Plan, folder: pathlib.Path) -> list:
    workers = 2 if "workers" in plan.shape else 0
    program = [str(HERE / "stopping_rank.py"), str(folder), plan.way, str(plan.seconds), str(workers)]
    preload = ("torch" if workers else "json") if plan.preload else "none"
    flags = ["--nproc-per-node", str(RANKS), "--preload", preload, "--shutdown-timeout", "20"]
    if "wrapped" not in plan.shape:
        return [os.environ["TAAS_RUN"], *flags, *program]
    wrapper = folder / "wrapper.sh"
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)
    return [os.environ["TAAS_RUN"], *flags, "--no-python", str(wrapper), *program]


def befall(plan: Plan, launcher: subprocess.Popen, ranks: list):
    """The event of the plan. Whoever was to be signalled may just have ended."""
    victim = ranks[plan.victim]
    if plan.event == "rank killed":
        return send(victim, signal.SIGKILL)
    if plan.event == "leader killed":
        return send(leader_of(victim), signal.SIGKILL)
    if plan.event == "keeper killed":
        return send(launcher.pid, signal.SIGKILL)
    if plan.event == "agent killed":
        return send(child_of(launcher.pid), signal.SIGKILL)
    if plan.event == "rank frozen":
        send(victim, signal.SIGSTOP)
    if plan.event == "agent frozen":
        send(child_of(launcher.pid), signal.SIGSTOP)
    send(launcher.pid, plan.signal)
    if plan.event == "stop twice":
        time.sleep(0.3 + plan.moment)  # what comes sooner is the same wish
        send(launcher.pid, plan.signal)


def judge(plan: Plan, folder: pathlib.Path) -> list:
    """What should not be, as lines; saves are counted by the caller."""
    wrong = []
    for rank in plan.expected:
        whole = any(path.stat().st_size == WHOLE for path in folder.rglob(f"save-{rank}"))
        if not whole or not (folder / f"saved-{rank}").exists():
            wrong.append(f"the save of rank {rank} is lost")
        elif not any(path.stat().st_size == WHOLE for path in folder.glob(f"taas-runs/*/output/save-{rank}")):
            wrong.append(f"the save of rank {rank} is whole, and not published")
    for path in folder.glob("taas-runs/*/output/save-*"):
        if path.stat().st_size != WHOLE:
            wrong.append(f"{path.name} is published, and torn")
    return wrong


def run(number: int, with_torch: bool) -> tuple:
    """The plan, and what was wrong."""
    plan = draw(number, with_torch)
    with tempfile.TemporaryDirectory(prefix="random-stops-") as temporary:
        folder = pathlib.Path(temporary)
        with open(folder / "console", "w") as console:
            launcher = subprocess.Popen(
                command(plan, folder),
                cwd=folder,
                env=environment(**{MARK: temporary}),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
            )
        wrong = []
        try:
            ready = [folder / f"ready-{rank}" for rank in range(RANKS)]
            wait_until(lambda: all(path.exists() for path in ready) or launcher.poll() is not None, "ranks are up")
            time.sleep(plan.moment)
            befall(plan, launcher, [int(path.read_text()) for path in ready])
            launcher.wait(timeout=DEADLINE_SECONDS)
            if plan.event == "keeper killed":
                wait_until(lambda: not marked(folder), "all are gone")
            if left := marked(folder):
                wrong.append(f"processes are left: {left}")
            wrong += judge(plan, folder)
        except (AssertionError, subprocess.TimeoutExpired, FileNotFoundError) as error:
            wrong.append(f"it hung or did not begin: {error}")
        finally:
            end(launcher)
            for pid in marked(folder):
                os.kill(pid, signal.SIGKILL)
        if wrong:
            wrong.append((folder / "console").read_text(errors="replace")[-2000:])
    return plan, wrong


def has_torch() -> bool:
    return subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0


def run_many(numbers, at_once: int, say=lambda text: None) -> list:
    """(plan, what was wrong) of each."""
    with_torch = has_torch()
    return judged(lambda number: run(number, with_torch), numbers, at_once, say)


def main():
    options = parser(__doc__, runs=300, at_once=4).parse_args()
    results = run_many(numbers_of(options), options.at_once, print_at_once)
    saves = sum(len(plan.expected) for plan, _ in results)
    lines = [line for _, wrong in results for line in wrong]
    lost = sum("is lost" in line for line in lines)
    torn = sum("torn" in line for line in lines)
    kept_back = sum("not published" in line for line in lines)
    left = sum("are left" in line for line in lines)
    hung = sum("hung" in line for line in lines)
    print(
        f"{len(results)} runs: {saves - lost} of {saves} saves whole, {torn} torn files published, "
        f"{kept_back} whole ones not, {left} with processes left, {hung} hung"
    )
    for shape in SHAPES:
        mine = [(plan, wrong) for plan, wrong in results if plan.shape == shape]
        total = sum(len(plan.expected) for plan, _ in mine)
        gone = sum("is lost" in line for _, wrong in mine for line in wrong)
        print(f"  {shape}: {len(mine)} runs, {total - gone} of {total} saves whole")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
