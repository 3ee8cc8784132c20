"""The command line of scripts/check-gpu, whose head says what it does."""

import argparse
import datetime
import pathlib
import subprocess
import sys
import tempfile
import time

from check_gpu import build, machine, report, seen
from check_gpu import sharing, modes, faults, speed, several  # noqa: F401, I001  (they register their checks, in this order)
from check_gpu.result import CHECKS, GREEN, RED, SKIPPED, Check, Red, Result, Skip
from check_gpu.session import ROOT, Session


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="check-gpu", description="Checks on this machine's GPUs what continuous integration cannot."
    )
    parser.add_argument("--list", action="store_true", help="say what is checked, and where it was seen")
    parser.add_argument("--only", metavar="NAME,…", help="these checks alone")
    parser.add_argument("--gpus", type=int, metavar="N", help="use no more than so many (default: all)")
    parser.add_argument(
        "--repeats", type=int, default=3, metavar="N", help="how often hangs, restarts and rates are tried (default: 3)"
    )
    parser.add_argument(
        "--report",
        type=pathlib.Path,
        metavar="FILE",
        help="where the report goes (default: check-gpu.md in the build folder)",
    )
    parser.add_argument("--record", action="store_true", help="note in seen.json, for --list, what was green here")
    parser.add_argument("--no-build", action="store_true", help="take what is built already")
    options = parser.parse_args(arguments)
    for name in ("gpus", "repeats"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name} must be 1 or more, not {getattr(options, name)}")
    return options


def choose(only: str | None) -> list[Check]:
    if only is None:
        return CHECKS
    wanted = [name.strip() for name in only.split(",")]
    known = {check.name: check for check in CHECKS}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise build.Failed(f"there is no check '{unknown[0]}': --list names them")
    return [known[name] for name in wanted]


def run_check(check: Check, session: Session) -> Result:
    """Whatever a check raises is its result: the others go on."""
    began = time.monotonic()
    try:
        if session.gpus < check.gpus:
            raise Skip(f"needs {check.gpus} GPUs")
        found = check.run(session)
        state, line, details = GREEN, found.line, found.details
    except Skip as reason:
        state, line, details = SKIPPED, str(reason), ""
    except Red as red:
        state, line, details = RED, str(red), red.details
    except Exception as error:  # noqa: BLE001  (of the check itself)
        state, line, details = RED, f"the check itself failed: {type(error).__name__}: {error}".splitlines()[0], ""
    return Result(check, state, line, details, time.monotonic() - began)


def commit() -> str:
    said = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return said.stdout.strip() or "not known"


def run_all(options: argparse.Namespace, checks: list[Check], gpus: list[machine.Gpu]) -> int:
    if not options.no_build:
        build.build()
    elif build.missing():
        raise build.Failed(f"not built: {', '.join(build.missing())}; leave --no-build out")
    versions = machine.versions(build.interpreter())
    if versions.usable_gpus == 0:
        raise build.Failed(
            f"the torch of {build.interpreter()} (CUDA {versions.cuda}) cannot use the GPUs of this machine"
        )
    count = min(versions.usable_gpus, options.gpus or versions.usable_gpus)
    results = []
    for check in checks:
        with tempfile.TemporaryDirectory(prefix="check-gpu-") as folder:
            session = Session(count, build.folder(), build.interpreter(), pathlib.Path(folder), options.repeats)
            results.append(run_check(check, session))
        print(report.line(results[-1]), flush=True)
    date = datetime.date.today().isoformat()
    text = report.render(results, gpus[:count], versions, machine.system(), commit(), machine.topology(), date)
    if options.record:
        seen.record(results, gpus[:count], versions, commit(), date)
    path = options.report or build.folder().parent / "check-gpu.md"
    path.write_text(text)
    print(f"\n{report.count(results)}; the report to paste is {path}")
    return report.exit_code(results)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        checks = choose(options.only)
        if options.list:
            known = seen.read()
            print("\n".join(seen.line(check, known) for check in checks))
            return 0
        return run_all(options, checks, machine.find_gpus())
    except machine.NoGpu as reason:
        print(f"check-gpu: there is no NVIDIA GPU to check: {reason}", file=sys.stderr)
    except (build.Failed, OSError) as problem:
        print(f"check-gpu: {problem}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
