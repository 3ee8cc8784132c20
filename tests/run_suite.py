"""Runs one suite, and ends whatever it leaves behind, so that a suite that failed or was killed disturbs no other one.

usage: run_suite.py SECONDS COMMAND [ARGUMENT]...

The command has a session of its own. Processes that it starts and forgets become children of this one
(PR_SET_CHILD_SUBREAPER) and are killed when the command has ended, when its time is up, or when this process is asked
to end. The exit code is the command's, or 124 when its time was up.
"""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TIME_IS_UP = 124
SECONDS_TO_DIE = 30  # longer only in the kernel: on a disk that stands still
HANDLED = (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

prctl = ctypes.CDLL(None).prctl


class Interrupted(Exception):
    """A signal asks for the end; `args[0]` is its number."""


def interrupt(number, _frame):
    raise Interrupted(number)


def descendants() -> dict[int, str]:
    """The processes that descend from this one, with their names; of what has ended already it is empty."""
    parents, names = {}, {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            name, fields = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, parent = fields.split()[:2]
        parents[int(folder.name)], names[int(folder.name)] = int(parent), "" if state in "ZX" else name
    found, older = {}, {os.getpid()}
    while older:
        older = {pid for pid, parent in parents.items() if parent in older} - set(found)
        found.update((pid, names[pid]) for pid in older)
    return found


def wait_for(pid: int) -> int:
    """The exit code of a child, while all others that end are reaped."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def end_all() -> list[str]:
    """Kills all descendants and waits for them. The names of those that were still at work."""
    at_work = {}
    while left := descendants():
        for pid, name in left.items():
            if name:
                at_work[pid] = f"{name} ({pid})"
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, 0):
                pass
        except ChildProcessError:
            pass
    return list(at_work.values())


def main(seconds: str, *command: str) -> int:
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in HANDLED:
        signal.signal(number, interrupt)
    signal.alarm(int(seconds))
    try:
        code = wait_for(
            subprocess.Popen(
                command, start_new_session=True, preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            ).pid
        )
    except Interrupted as why:
        code = 128 + why.args[0]
        if why.args[0] == signal.SIGALRM:
            code = TIME_IS_UP
            print(f"run_suite: the suite had not ended after {seconds} s", flush=True)
    for number in set(HANDLED) - {signal.SIGALRM}:
        signal.signal(number, signal.SIG_IGN)
    signal.alarm(SECONDS_TO_DIE)
    try:
        if left := end_all():
            print(f"run_suite: was left behind, and ended: {', '.join(left)}", flush=True)
    except Interrupted:
        print(f"run_suite: cannot be ended: {', '.join(descendants().values())}", flush=True)
        code = code or 1
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
