"""Ranks that have raised and do not end, and ranks that live on after all others."""

import json
import pathlib
import re
import signal

import pytest
from waiting import DEADLINE_SECONDS, next_line

TORCH = "import torch\n"
WRITER = """
import os, sys, threading, time
stop = threading.Event()
if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    threading.Thread(target=stop.wait, name="writer").start()
    raise ValueError("bad shape")
"""
WAITS = "while not os.path.exists('finish'):\n    time.sleep(0.05)\n"
AT_EXIT = """
import atexit, os, threading, time
if os.environ["RANK"] == "1":
    atexit.register(threading.Event().wait)
    raise ValueError("bad shape")
"""
EXECUTOR = """
import concurrent.futures, os, threading, time
if os.environ["RANK"] == "1":
    pool = concurrent.futures.ThreadPoolExecutor(1)
    pool.submit(threading.Event().wait)
    raise ValueError("bad shape")
"""


def journal(launcher) -> list:
    return [json.loads(line) for line in (launcher.run_folder() / "journal.jsonl").read_text().splitlines()]


def lingering(launcher) -> list:
    return [entry for entry in journal(launcher) if entry.get("event") == "rank_lingers"]


@pytest.mark.gate
def test_a_rank_that_raised_and_waits_for_a_thread_counts_as_failed(launcher):
    result = launcher.run("--nproc-per-node", 3, "--exit-timeout", 4, launcher.python(TORCH + WRITER + WAITS))
    assert result.returncode == 1, result.stderr
    lines = result.stderr.splitlines()
    assert 'taas-run: rank 1 raised ValueError: bad shape and has not ended: waits for thread "writer"' in lines, (
        result.stderr
    )
    assert "taas-run: rank 1 raised ValueError: bad shape" in lines, result.stderr
    assert 'hint: after its exception its process waited for thread "writer" (4 s: --exit-timeout)' in result.stderr
    assert 'script.py", line 7, in <module>' in result.stderr, "its traceback is in the report"
    assert [entry["state"] for entry in lingering(launcher)] == ["failed"]


@pytest.mark.parametrize(
    "program, waits_for",
    [(AT_EXIT, "functions that run at Python's end (atexit)"), (EXECUTOR, 'thread "ThreadPoolExecutor-0_0"')],
    ids=["atexit", "executor"],
)
def test_what_keeps_a_rank_is_named(launcher, program, waits_for):
    result = launcher.run("--nproc-per-node", 2, "--exit-timeout", 4, launcher.python(TORCH + program + WAITS))
    assert result.returncode == 1, result.stderr
    assert f"rank 1 raised ValueError: bad shape and has not ended: waits for {waits_for}" in result.stderr


def test_a_rank_that_raised_and_does_not_end_is_restarted(launcher):
    (launcher.folder / "finish").touch()
    result = launcher.run(
        "--nproc-per-node",
        2,
        "--exit-timeout",
        4,
        "--max-restarts",
        1,
        "--monitor-interval",
        0,
        launcher.python(TORCH + WRITER + WAITS),
    )
    assert result.returncode == 0, result.stderr
    assert "restarting all 2 ranks, restart 1 of 1" in result.stderr


@pytest.mark.parametrize("timeout", ["60", "off"])
def test_a_stop_before_the_timeout_names_it_first(launcher, timeout):
    process = launcher.start("--nproc-per-node", 2, "--exit-timeout", timeout, launcher.python(TORCH + WRITER + WAITS))
    next_line(process.stderr, "has not ended")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 130, err
    assert "rank 1 had raised ValueError: bad shape and not ended when the run was stopped by SIGINT" in err, err
    assert "raise ValueError" in err, "the report has the traceback"


GROUP = """
import os, sys, threading, time
import torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    threading.Thread(target=threading.Event().wait).start()
    %s
"""


@pytest.mark.parametrize("as_module", [False, True], ids=["script", "module"])
def test_torch_tells_an_exception_that_nobody_caught_from_others(launcher, as_module):
    """It puts the rank in front of what sys.excepthook prints."""
    script = launcher.python(GROUP % 'raise ValueError("bad shape")' + WAITS)
    program = ["-m", pathlib.Path(script).stem] if as_module else [script]
    result = launcher.run("--nproc-per-node", 2, "--exit-timeout", 4, "--preload", "none", *program)
    assert result.returncode == 1, result.stderr
    assert "rank 1 raised ValueError: bad shape and has not ended\n" in result.stderr
    assert "hint: after its exception its process did not end (4 s: --exit-timeout)" in result.stderr


SURVIVORS = """
import code, multiprocessing, os, sys, threading, traceback
import torch.distributed as dist

def raises():
    raise ValueError("survived")

rank = int(os.environ["RANK"])
if rank == 0 and os.fork() == 0:
    raise ValueError("survived")
if rank == 0:
    os.wait()
dist.init_process_group("gloo")
if rank == 1:
    try:
        raise ValueError("survived")
    except ValueError:
        traceback.print_exc()
if rank == 2:
    threading.Thread(target=raises).start()
if rank == 3:
    child = multiprocessing.get_context("fork").Process(target=raises)
    child.start()
    child.join()
if rank == 4:
    code.InteractiveConsole().push("raise ValueError('survived')")
if rank == 5:
    def main():
        try:
            raises()
        except ValueError:
            sys.excepthook(*sys.exc_info())
    main()
if rank == 6:
    threading.excepthook = lambda of: sys.excepthook(of.exc_type, of.exc_value, of.exc_traceback)
    threading.Thread(target=raises).start()
last = threading.Timer(12, print, ["over"])
last.start()
last.join()
"""


@pytest.mark.parametrize("preload", ["auto", "none"])
def test_a_traceback_of_a_program_that_goes_on_is_no_failure(launcher, preload):
    """Each rank survives one of another kind, and waits for a lock without a word.

    It goes on for three times as long as a rank that has raised may live.
    """
    result = launcher.run("--nproc-per-node", 7, "--exit-timeout", 4, "--preload", preload, launcher.python(SURVIVORS))
    assert result.returncode == 0, result.stderr
    for rank in range(7):
        assert "ValueError: survived" in (launcher.run_folder() / "generation-0" / f"rank-{rank:04}.err").read_text()
    assert "counts as failed" not in result.stderr
    assert "failed" not in [entry["state"] for entry in lingering(launcher)]


def test_where_it_is_not_certain_a_line_says_so_and_nothing_is_done(launcher):
    """Without a preloaded interpreter and torch's prefix nobody knows whether the exception was caught."""
    process = launcher.start(
        "--nproc-per-node", 2, "--exit-timeout", 1, "--preload", "none", launcher.python(WRITER + WAITS)
    )
    line = next_line(process.stderr, "has done nothing since")
    assert (
        "rank 1 printed ValueError: bad shape and has done nothing since; it may have failed, and has not ended" in line
    )
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 130, err
    assert (
        "rank 1 had printed ValueError: bad shape and done nothing since when the run was stopped by SIGINT" in err
    ), err


def test_ranks_that_live_after_all_others_are_named(launcher):
    process = launcher.start("--nproc-per-node", 4, "--exit-timeout", 2, *launcher.ranks("1=graceful:0", "*=exit:0"))
    line = next_line(process.stderr, "has not ended")
    assert re.search(r"ranks 0, 2, 3 ended well \d+ s ago; rank 1 has not ended", line), line
    process.terminate()
    assert process.wait(DEADLINE_SECONDS) == 143


@pytest.mark.gate
def test_the_timeout_is_a_number_or_off(launcher):
    result = launcher.run("--exit-timeout", "soon", "true")
    assert result.returncode == 2
    assert "--exit-timeout" in result.stderr and "not a number of seconds" in result.stderr
