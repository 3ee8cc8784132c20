"""While ranks hang, a line names who keeps the others waiting, and at which line of the program: real torch, real hangs."""

import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

TAAS_RUN = os.environ["TAAS_RUN"]
FULL = bool(os.environ.get("TAAS_FULL"))  # ./scripts/test --full
DEADLINE_SECONDS = 240
PROGRAM = pathlib.Path(__file__).parent / "hangs" / "kinds.py"
AT_ONCE = 8

# The kind, and what it is told by, where that is not `# kind`.
KINDS = ["lock", "rlock", "sleep", "loop", "gil", "gil of a thread", "stopped", "another collective", "receive", "worker", "pipe",
         "fifo", "queue", "event", "asyncio", "socket", "child", "pool", "file lock", "at exit", "thread at the end", "key",
         "masked", "cascade", "one batch less", "backward", "asynchronous", "monitored", "never joins"]
NATIVE = os.environ.get("TAAS_NATIVE_HANGS")  # a program on libtaas
NATIVE_PROGRAM = PROGRAM.with_name("native_kinds.cpp")
NATIVE_KINDS = ["lock", "sleep", "loop", "thread", "future", "stopped", "fifo", "receive", "another collective", "backward", "never joins"]
QUICK_NATIVE = ["lock", "loop", "backward", "another collective"]
QUICK = ["lock", "loop", "gil", "stopped", "another collective", "worker", "thread at the end", "never joins", "backward"]


def lines_of(kind, program=PROGRAM) -> list:
    """Those of a loop are several."""
    lines = enumerate(program.read_text().splitlines(), 1)
    return [f"{program.name}:{number}" for number, line in lines if line.endswith((f"  # {kind}", f"  // {kind}"))]


def told(kind, folder, program=PROGRAM) -> str:
    """What the launcher says first of the hang, or everything that it said."""
    command = [TAAS_RUN, "--nproc-per-node", "4", "--shutdown-timeout", "1", "--leftover-timeout", "1", program, kind, folder]
    run = subprocess.Popen(command, cwd=folder, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    said = []
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        for line in run.stderr:
            said.append(line)
            if "nothing has moved for" in line or " waited " in line:
                return line
            if time.monotonic() > deadline:
                break
        return "".join(said)
    finally:
        run.send_signal(signal.SIGTERM)
        run.stderr.read()
        run.wait()


def wrong(kind, line, source=PROGRAM) -> str:
    """Why the line is no good; empty: it names rank 2, and where it is."""
    names = re.search(r" (for )?rank 2 (in|at|waits in) ", line)
    if not names:
        return f"{kind}: rank 2 is not named: {line}"
    wanted = lines_of(kind, source)
    return "" if any(where in line for where in wanted) else f"{kind}: {wanted} is not named: {line}"


def told_of_all(kinds, folder, program) -> list:
    folders = {kind: folder / kind.replace(" ", "-") for kind in kinds}
    for each in folders.values():
        each.mkdir()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        lines = list(pool.map(lambda kind: told(kind, folders[kind], program), kinds))
    for kind, line in zip(kinds, lines):
        print(f"{kind}: {line.strip()}")
    return lines


def test_the_line_that_the_others_wait_for_is_named(tmp_path):
    kinds = KINDS if FULL else QUICK
    lines = told_of_all(kinds, tmp_path, PROGRAM)
    assert [problem for kind, line in zip(kinds, lines) if (problem := wrong(kind, line))] == []


@pytest.mark.skipif(not NATIVE, reason="this build has no libtaas")
def test_the_line_of_a_program_in_cpp_is_named(tmp_path):
    kinds = NATIVE_KINDS if FULL else QUICK_NATIVE
    lines = told_of_all(kinds, tmp_path, NATIVE)
    assert [problem for kind, line in zip(kinds, lines) if (problem := wrong(kind, line, NATIVE_PROGRAM))] == []


def test_a_hang_is_ended_and_the_ranks_are_started_again_where_a_time_was_set(tmp_path):
    command = [TAAS_RUN, "--nproc-per-node", "4", "--shutdown-timeout", "1", "--hang-timeout", "16", "--max-restarts", "1"]
    done = subprocess.run([*command, PROGRAM, "once", tmp_path], cwd=tmp_path, text=True, capture_output=True,
                          timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, done.stderr
    assert "all ranks are stopped: nothing has moved for 16 s (--hang-timeout)" in done.stderr
    report = next(line for line in done.stderr.splitlines() if line.endswith("(--hang-timeout 16)"))
    assert f"for rank 2 in odd ({lines_of('once')[0]}), which waits for a lock or another thread" in report
