"""Runs that are stopped, fail or are killed while ranks write: `random_publishing.py --runs 1000 --at-once 4`.

Each run is drawn from its number: what ranks do about a signal (see publishing_rank.py), what befalls them and when,
whether they are preloaded and whether the run restarts. It is judged by what has to hold then: no published file is
torn, what was renamed into place is published, as is what a handler saved, and what is staged and not published is
named. TAAS_RUN names the launcher.
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
    agent_of,
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
PIECES, PIECE_BYTES = 24, 4096  # as publishing_rank.py writes them
WAYS = ("default", "saves", "raises", "exception", "exit", "ends")
EVENTS = ("SIGTERM", "SIGINT", "rank killed", "agent killed", "nothing")


@dataclasses.dataclass
class Plan:
    number: int
    way: str
    event: str
    preload: bool
    restarts: int
    victim: int
    moment: float

    def __str__(self):
        return (
            f"{self.number}: {self.way}, {self.event}, rank {self.victim}, "
            f"{'preloaded' if self.preload else 'not preloaded'}, "
            f"{self.restarts} restarts, after {self.moment:.2f} s"
        )


def draw(number: int) -> Plan:
    rng = random.Random(number)
    way = rng.choice(WAYS)
    event = "nothing" if way in ("exception", "exit", "ends") and rng.random() < 0.7 else rng.choice(EVENTS[:-1])
    return Plan(number, way, event, rng.random() < 0.5, rng.choice((0, 0, 1)), rng.randrange(RANKS), rng.random())


def befall(plan: Plan, launcher: subprocess.Popen, ranks: list):
    if plan.event == "rank killed":
        send(ranks[plan.victim], signal.SIGKILL)
    elif plan.event == "agent killed":
        agent = agent_of(launcher)
        send(agent, signal.SIGKILL) if agent else None
    elif plan.event != "nothing":
        send(launcher.pid, signal.Signals[plan.event])


def version_of(path: pathlib.Path):
    """The version of a whole file; nothing: it is torn, or of two versions."""
    content = path.read_bytes()
    if len(content) != PIECES * PIECE_BYTES or content[:8] * (len(content) // 8) != content:
        return None
    return int.from_bytes(content[:8], "little")


def judge(plan: Plan, folder: pathlib.Path, console: str) -> list:
    wrong = []
    run = next(folder.glob("taas-runs/2*"))
    published = {path.name: path for path in (run / "output").iterdir()}
    wrong += [f"{name} is published, and torn" for name, path in published.items() if version_of(path) is None]
    if plan.event == "agent killed":
        return wrong  # nobody is left who could publish or name anything
    for rank in range(RANKS):
        kept = folder / f"kept-{rank}"
        newest = version_of(published[f"kept-{rank}"]) if f"kept-{rank}" in published else -1
        if kept.exists() and newest is not None and newest < int(kept.read_text()):
            wrong.append(f"kept-{rank} is missing: {kept.read_text()} was renamed into place, {newest} is published")
        if (folder / f"final-{rank}").exists() and f"final-{rank}" not in published:
            wrong.append(f"final-{rank} was saved, and is not published")
    staging = run / ".staging"
    for path in staging.iterdir() if staging.exists() else ():
        if path.name.endswith(".tmp"):
            continue
        same = path.name in published and published[path.name].read_bytes() == path.read_bytes()
        many = "more; they stay in" in console
        if not same and path.name not in console and not many:
            wrong.append(f"{path.name} is not published, and not named")
    return wrong


def run(number: int) -> tuple:
    """The plan, and what was wrong."""
    plan = draw(number)
    with tempfile.TemporaryDirectory(prefix="random-publishing-") as temporary:
        folder = pathlib.Path(temporary)
        command = [
            os.environ["TAAS_RUN"],
            "--nproc-per-node",
            str(RANKS),
            "--monitor-interval",
            "0",
            "--max-restarts",
            str(plan.restarts),
            "--preload",
            "json" if plan.preload else "none",
            "--shutdown-timeout",
            "20",
            str(HERE / "publishing_rank.py"),
            temporary,
            plan.way,
        ]
        with open(folder / "console", "w") as console:
            launcher = subprocess.Popen(
                command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=console, stderr=console
            )
        wrong = []
        try:
            ready = [folder / f"ready-{rank}" for rank in range(RANKS)]
            wait_until(lambda: all(path.exists() for path in ready) or launcher.poll() is not None, "ranks are up")
            time.sleep(plan.moment)
            befall(plan, launcher, [int(path.read_text()) if path.exists() else 1 << 30 for path in ready])
            launcher.wait(timeout=DEADLINE_SECONDS)
            wrong += judge(plan, folder, (folder / "console").read_text(errors="replace"))
        except (AssertionError, subprocess.TimeoutExpired, FileNotFoundError) as error:
            wrong.append(f"it hung or did not begin: {error}")
        finally:
            end(launcher)
        if wrong:
            wrong.append((folder / "console").read_text(errors="replace")[-3000:])
    return plan, wrong


def run_many(numbers, at_once: int, say=lambda text: None) -> list:
    """(plan, what was wrong) of each."""
    return judged(run, numbers, at_once, say)


def main():
    options = parser(__doc__, runs=1000, at_once=4).parse_args()
    results = run_many(numbers_of(options), options.at_once, print_at_once)
    lines = [line for _, wrong in results for line in wrong]
    torn, missing, unnamed = (sum(word in line for line in lines) for word in ("and torn", "is missing", "not named"))
    unsaved = sum("was saved, and is not published" in line for line in lines)
    hung = sum("hung" in line for line in lines)
    print(
        f"{len(results)} runs: {torn} torn files published, {missing + unsaved} whole ones missing, "
        f"{unnamed} not named, {hung} hung"
    )
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
