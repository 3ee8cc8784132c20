"""Runs of 2 to 4 agents that are killed or frozen, or their ranks are: `random_nodes.py --runs 300 --at-once 2`.

The agents join each other on this machine and share the run's folder, or with `--apart` have each its own. It befalls
them at random moments while ranks write.

They are judged as random_publishing.py judges, and all nodes that are left have to end with the same exit code, which
is 0 only if the ranks of the last generation have all ended well. TAAS_RUN names the launcher.
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

from random_publishing import version_of
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
from free_port import free_port

KILLED = 128 + signal.SIGKILL  # what the keeper of an agent that was killed ends with
EVENTS = ("rank killed", "agent killed", "first agent killed", "agent frozen", "rank frozen", "nothing", "stopped")


@dataclasses.dataclass
class Plan:
    number: int
    nodes: int
    way: str
    event: str
    restarts: int
    victim: int
    moment: float

    def __str__(self):
        return (
            f"{self.number}: {self.nodes} nodes, {self.way}, {self.event}, node {self.victim}, "
            f"{self.restarts} restarts, after {self.moment:.2f} s"
        )


def draw(number: int) -> Plan:
    rng = random.Random(number)
    nodes = rng.randint(2, 4)
    return Plan(
        number,
        nodes,
        rng.choice(("ends", "ends", "exception")),
        rng.choice(EVENTS),
        rng.randint(0, 1),
        rng.randrange(1, nodes),
        2 * rng.random(),
    )


def order_of(launchers: list, folder: pathlib.Path) -> list:
    """The coordinator first: whoever had the port first, and says how many ranks there are."""

    def leads(node: int) -> bool:
        return " ranks on " in (folder / f"console-{node}").read_text(errors="replace")

    wait_until(
        lambda: any(leads(node) or one.poll() is not None for node, one in enumerate(launchers)), "one of them leads"
    )
    return sorted(range(len(launchers)), key=lambda node: not leads(node))


def befall(plan: Plan, launchers: list, ranks: list):
    """`launchers` begin with the coordinator."""
    agent = agent_of(launchers[0 if plan.event == "first agent killed" else plan.victim])
    if plan.event == "rank killed":
        send(ranks[plan.victim], signal.SIGKILL)
    elif plan.event in ("agent killed", "first agent killed") and agent:
        send(agent, signal.SIGKILL)
    elif plan.event == "stopped":
        send(launchers[0].pid, signal.SIGTERM)
    elif plan.event in ("agent frozen", "rank frozen"):
        frozen = agent if plan.event == "agent frozen" else ranks[plan.victim]
        if frozen:
            send(frozen, signal.SIGSTOP)
            time.sleep(plan.moment)
            send(frozen, signal.SIGCONT)


def judge(plan: Plan, folder: pathlib.Path, places: list, codes: list, consoles: str) -> list:
    """`places` are the run's folders, the coordinator's first. What nodes say of others' files is on its console."""
    left = [code for code in codes if code != KILLED]
    runs = [place / "taas-runs/random" for place in places if (place / "taas-runs/random").exists()]
    if not runs:
        return [f"no run began: {codes}"]
    wrong = [] if len(set(left)) <= 1 else [f"exit codes differ: {codes}"]
    everywhere = [
        path for run in runs for part in ("output", ".delivered") for path in (run / part).rglob("*") if path.is_file()
    ]
    wrong += [f"{path.name} is published, and torn" for path in everywhere if version_of(path) is None]
    published = {path.name: path for path in (runs[0] / "output").iterdir()}
    if 0 in left:
        for rank in range(plan.nodes):
            newest = version_of(published[f"kept-{rank}"]) if f"kept-{rank}" in published else -1
            if newest is not None and newest < int((folder / f"kept-{rank}").read_text()):
                wrong.append(f"kept-{rank} is missing: {newest} is published")
    if plan.event == "first agent killed":
        return wrong  # it was the coordinator, which alone could have named anything
    for path in (path for run in runs for path in (run / ".staging").glob("*")):
        same = any(other.name == path.name and other.read_bytes() == path.read_bytes() for other in everywhere)
        many = "more; they stay in" in consoles
        if not path.name.endswith(".tmp") and not same and path.name not in consoles and not many:
            wrong.append(f"{path.name} is not published, and not named")
    return wrong


def run(number: int, apart: bool) -> tuple:
    plan = draw(number)
    with tempfile.TemporaryDirectory(prefix="random-nodes-") as temporary:
        folder = pathlib.Path(temporary)
        place = [
            f"--nnodes={plan.nodes}",
            "--nproc-per-node=1",
            "--rdzv-backend=c10d",
            "--preload=none",
            f"--rdzv-endpoint=localhost:{free_port()}",
            "--rdzv-id=random",
            f"--max-restarts={plan.restarts}",
            "--monitor-interval=0",
            "--rdzv-conf=join_timeout=30,last_call_timeout=1",
            "--node-timeout=5",
        ]
        launchers = []
        places = [folder / f"node-{node}" if apart else folder for node in range(plan.nodes)]
        for node, own in enumerate(places):
            own.mkdir(exist_ok=True)
            with open(folder / f"console-{node}", "w") as console:
                command = [os.environ["TAAS_RUN"], *place, str(HERE / "publishing_rank.py"), temporary, plan.way]
                launchers.append(
                    subprocess.Popen(
                        command,
                        cwd=own,
                        env=environment(TAAS_TOKEN="a secret of ours"),
                        stdin=subprocess.DEVNULL,
                        stdout=console,
                        stderr=console,
                    )
                )
        wrong, consoles = [], ""
        try:
            ready = [folder / f"ready-{rank}" for rank in range(plan.nodes)]
            wait_until(
                lambda: all(path.exists() for path in ready) or any(one.poll() is not None for one in launchers),
                "ranks are up",
            )
            time.sleep(plan.moment)
            order = order_of(launchers, folder)
            launchers, places = [launchers[node] for node in order], [places[node] for node in order]
            befall(plan, launchers, [int(path.read_text()) if path.exists() else 1 << 30 for path in ready])
            codes = [one.wait(timeout=DEADLINE_SECONDS) for one in launchers]
            consoles = "".join((folder / f"console-{node}").read_text(errors="replace") for node in range(plan.nodes))
            wrong += judge(plan, folder, places if apart else [folder], codes, consoles)
        except (AssertionError, subprocess.TimeoutExpired, FileNotFoundError, StopIteration) as error:
            wrong.append(f"it hung or did not begin: {error}")
        finally:
            for one in launchers:
                end(one)
        if wrong:
            wrong.append(consoles[-3000:])
    return plan, wrong


def run_many(numbers, at_once: int, say=lambda text: None, apart: bool = False) -> list:
    """(plan, what was wrong) of each."""
    return judged(lambda number: run(number, apart), numbers, at_once, say)


def main():
    arguments = parser(__doc__, runs=300, at_once=2)
    arguments.add_argument("--apart", action="store_true", help="each node has a folder of its own")
    options = arguments.parse_args()
    results = run_many(numbers_of(options), options.at_once, print_at_once, options.apart)
    lines = [line for _, wrong in results for line in wrong]
    torn, missing, unnamed, codes, hung = (
        sum(word in line for line in lines) for word in ("and torn", "is missing", "not named", "codes differ", "hung")
    )
    print(
        f"{len(results)} runs: {torn} torn files published, {missing} whole ones missing, {unnamed} not named, "
        f"{codes} with different exit codes, {hung} hung"
    )
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
