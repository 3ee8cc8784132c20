"""How fast a failed run goes on: from the exit of one of 8 ranks to the last of the 8 new ones running."""

import pathlib
import sys
import tempfile

import measure

FAILING = 3


def instant(path: pathlib.Path) -> int:
    return int(path.read_text().split()[0])


def seconds_between(folder, ranks: int, failing: int) -> float:
    """From the failure to the last of the new ranks, by what bench_rank left there."""
    failed = instant(pathlib.Path(folder) / f"fail-0-{failing}")
    started = [instant(path) for path in pathlib.Path(folder).glob("start-1-*")]
    if len(started) != ranks:
        sys.exit(f"{len(started)} ranks after the restart instead of {ranks}")
    return (max(started) - failed) / 1e9


def restart_seconds(command, program) -> float:
    with tempfile.TemporaryDirectory() as folder:
        measure.wall_seconds([*command, program, folder, str(FAILING), "heed"], folder)
        return seconds_between(folder, measure.RANKS, FAILING)


def with_restart(command) -> list:
    return [*command[:-1], *measure.RESTART, command[-1]]


def main():
    options = measure.arguments(__doc__)
    every = measure.launchers(options.bin)
    commands = {name: with_restart(every[name]) for name in ("taas-run", "torchrun")}
    samples = {name: [] for name in commands}
    for number in range(options.rounds):
        for name in measure.rotated(commands, number):
            samples[name].append(restart_seconds(commands[name], str(options.bin / "bench_rank")))
    results = {name: measure.summary(values) for name, values in samples.items()}
    ratio = measure.ratio(samples["taas-run"], samples["torchrun"])
    rows = [[name, measure.milliseconds(result)] for name, result in results.items()]
    rows.append(["taas-run / torchrun", f"{ratio['median']:.4f} ({ratio['min']:.4f} to {ratio['max']:.4f})"])
    measure.report(
        "restart",
        options,
        {"seconds": results, "taas_run_over_torchrun": ratio},
        rows,
        ["launcher", "failure → 8 new ranks running"],
        [],
    )


if __name__ == "__main__":
    measure.run(main)
