"""How fast: steps of `train` beside eager Python, batches into the GPU, ranks' start."""

import json
import re
import statistics

from check_gpu.report import table
from check_gpu.result import Red, Seen, Skip, check
from check_gpu.session import RANKS, ROOT, Finished, Session

LEAST = 1.3  # times eager Python
FEED = ROOT / "apps" / "bench" / "data" / "into_gpu.py"
EPOCHS = 6


def epoch_rates(done: Finished) -> list[float]:
    """Samples a second at the end of each epoch but the first, in which everything is warmed up."""
    if "step" not in done.out:
        return [float(rate) for rate in re.findall(r"^(\d+) samples/s", done.out, re.MULTILINE)][1:]
    ends = re.findall(r"epoch (\d+)/\d+ step (\d+)/(\d+) loss \S+ (\d+) samples/s", done.out)
    return [float(rate) for epoch, step, steps, rate in ends if step == steps and int(epoch) > 1]


def measure(session: Session, name: str) -> float:
    if name == "python":
        done = session.taas_run(session.gpus, RANKS / "digits.py")
    else:
        done = session.taas_run(session.gpus, "train", "--epochs", EPOCHS)
    rates = epoch_rates(done)
    done.need(done.code == 0 and bool(rates), f"{name} ended with {done.code}")
    return statistics.median(rates)


@check("step", f"train beside the same network in eager Python, paired: ≥ {LEAST}×")
def step(session: Session) -> Seen:
    names = ["python", "train"]
    rates = {name: [] for name in names}
    for number in range(session.repeats):
        for name in names[number % 2 :] + names[: number % 2]:
            rates[name].append(measure(session, name))
    ratios = {name: [a / b for a, b in zip(rates[name], rates["python"], strict=True)] for name in names}
    rows = [
        [
            name,
            f"{statistics.median(rates[name]):.0f}",
            f"{statistics.median(ratios[name]):.2f}",
            f"{min(ratios[name]):.2f} to {max(ratios[name]):.2f}",
        ]
        for name in names
    ]
    details = table(["", "samples/s of all ranks", "× Python", "spread"], rows)
    ratio = statistics.median(ratios["train"])
    line = f"{ratio:.2f}×"
    if ratio < LEAST:
        raise Red(line, details)
    return Seen(line, details)


@check("feed", "batches into the GPU beside torch's DataLoader")
def feed(session: Session) -> Seen:
    if not FEED.exists():
        raise Skip(f"there is no {FEED.relative_to(ROOT)}")
    done = session.run(
        session.python,
        FEED,
        "--python",
        session.python,
        "--package",
        session.bin.parent / "python",
        "--rounds",
        session.repeats,
        limit=3600,
    )
    details = f"```\n{done.out.strip()}\n```"
    if done.code != 0:
        raise Red(
            f"{FEED.name} ended with {done.code}: {(done.err.strip().splitlines() or ['it says nothing'])[-1]}", details
        )
    return Seen("as its own bounds want it", details)


@check("short run", "a whole run of a few all-reduces, from launch to end, beside torchrun")
def short_run(session: Session) -> Seen:
    sizes = {"BYTES": 4096}
    ours, theirs = [], []
    for _ in range(session.repeats):
        ours.append(session.taas_run(session.gpus, RANKS / "all_reduce.py", **sizes))
        theirs.append(session.torchrun(session.gpus, RANKS / "all_reduce.py", **sizes))
    for done in ours + theirs:
        done.need(done.code == 0 and json.loads(done.out.strip().splitlines()[-1])["right"], "a wrong result")
    mine, other = (statistics.median(done.seconds for done in runs) for runs in (ours, theirs))
    return Seen(f"{mine:.1f} s, torchrun {other:.1f} s")
