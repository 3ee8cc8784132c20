"""How long the others go on after a failure: from the exit of one of 8 ranks to the end of the last of the other 7."""

import os
import pathlib
import select
import sys
import tempfile
import time

import measure

FAILING = 3
GRACE_SECONDS = 2
CODE = 7  # bench_rank's


ATTEMPTS = 5  # to see all ranks before they are stopped


def rank_processes(folder: pathlib.Path, launcher) -> list:
    """Those that go on; nothing where one was gone before it could be watched, as on a busy machine."""
    paths = [folder / f"start-0-{rank}" for rank in range(measure.RANKS) if rank != FAILING]
    measure.wait_until(lambda: all(path.exists() for path in paths), "all ranks are up", launcher)
    processes: list = []
    try:
        for path in paths:
            processes.append(os.pidfd_open(int(path.read_text().split()[1])))
    except ProcessLookupError:
        for process in processes:
            os.close(process)
        return []
    return processes


def last_end_nanoseconds(processes: list) -> int:
    """When the last of them ended, as this process sees it."""
    poll = select.poll()
    for process in processes:
        poll.register(process, select.POLLIN)
    left = len(processes)
    while left:
        for process, _ in poll.poll():
            poll.unregister(process)
            os.close(process)
            left -= 1
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def stop_seconds(name, command, program, mode) -> float:
    for _ in range(ATTEMPTS):
        seconds = watched_stop_seconds(name, command, program, mode)
        if seconds is not None:
            return seconds
        print(f"{name}: a rank was gone before it could be watched; once more", file=sys.stderr)
    sys.exit(f"{name}: in {ATTEMPTS} runs a rank was gone before it could be watched: this machine is too busy")


def watched_stop_seconds(name, command, program, mode) -> float | None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        launcher = measure.start([*command, program, temporary, str(FAILING), mode], folder)
        processes = rank_processes(folder, launcher)
        ended = last_end_nanoseconds(processes)
        status = launcher.wait()
        if not processes:
            return None
        failed = int((folder / f"fail-0-{FAILING}").read_text().split()[0])
    expected = CODE if name == "taas-run" else 1
    if status != expected:
        sys.exit(f"{name}: exit status {status} instead of {expected}")
    return (ended - failed) / 1e9


def main():
    options = measure.arguments(__doc__)
    every = measure.launchers(options.bin)
    program = str(options.bin / "bench_rank")
    grace = ["--shutdown-timeout", str(GRACE_SECONDS)]
    commands = {name: [*every[name][:-1], *grace, every[name][-1]] for name in ("taas-run", "torchrun")}
    # torchrun waits 30 s for ranks that ignore SIGTERM, whatever --shutdown-timeout says: not part of this.
    cases = [("taas-run", "heed"), ("torchrun", "heed"), ("taas-run", "ignore")]
    samples = {case: [] for case in cases}
    for number in range(options.rounds):
        for name, mode in measure.rotated(cases, number):
            samples[name, mode].append(stop_seconds(name, commands[name], program, mode))
    results = {f"{name}, {mode} SIGTERM": measure.summary(values) for (name, mode), values in samples.items()}
    rows = [[name, measure.milliseconds(result)] for name, result in results.items()]
    measure.report(
        "stop",
        options,
        {"seconds": results, "grace_seconds": GRACE_SECONDS},
        rows,
        ["launcher, ranks", "first failure → all ranks gone"],
        [f"grace (--shutdown-timeout): {GRACE_SECONDS} s"],
    )


if __name__ == "__main__":
    measure.run(main)
