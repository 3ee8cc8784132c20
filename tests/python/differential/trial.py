"""Runs a pipeline in all its ways, and says where a registered one differs from the plain one."""

import contextlib
import os
import pathlib
import pickle
import re
import select
import signal
import sys
import tempfile
import traceback

from .program import Program, Way

SECONDS, SECONDS_WITH_A_LIBRARY = 60, 300


def faults_of(pipeline, data_workers):
    """One line for each way in which the promise is not kept.

    Each registered program is the only rank of a run, which `data_workers` starts.
    """
    references = [Way(number, data_workers=int(pipeline.random)) for number in pipeline.num_workers]
    ways, last = [Way(number) for number in pipeline.num_workers], pipeline.num_workers[-1]
    if pipeline.refused:
        faults = {way: _not_refused(pipeline, _seen(pipeline, way, data_workers)) for way in ways}
    else:
        ways += [Way(last, kills=True)] + [Way(last, resumes=True)] * (pipeline.resumes and pipeline.epochs > 1)
        expected = {way.num_workers: _seen(pipeline, way, data_workers) for way in references}
        faults = {
            way: f"the pipeline itself raised{said}"
            for way in references
            if (said := _said(expected[way.num_workers])) and not pipeline.raises
        }
        faults |= {way: difference(expected[way.num_workers], _seen(pipeline, way, data_workers)) for way in ways}
    return [f"{way}: {fault}" for way, fault in faults.items() if fault]


def _seen(pipeline, way, data_workers):
    workers = []

    def start():
        if way.data_workers:
            run = data_workers(way.data_workers)
            run.keep()
            workers[:] = run.workers

    def whole():
        program = Program(pipeline, way, workers)
        return program.run(), program.seen

    def rest():
        program = Program(pipeline, way, workers)
        program.run_on(checkpoint)
        return None, program.seen

    seconds = SECONDS_WITH_A_LIBRARY if pipeline.needs else SECONDS
    start()
    checkpoint, seen = in_a_fork(whole, seconds)
    if checkpoint:
        start()
        seen += in_a_fork(rest, seconds)[1]
    return seen


def in_a_fork(action, seconds):
    """What `action` gives in a process with a folder and a session of its own, or what was written instead.

    Torch is imported once for all of them. Ended with all its processes.
    """
    with tempfile.TemporaryDirectory(prefix="taas-way-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _act(action, folder)
        fd = os.pidfd_open(pid)
        select.select([fd], [], [], seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)
        if (folder / "result").exists():
            return pickle.loads((folder / "result").read_bytes())
        return None, [("did not end, or died", (folder / "output").read_text(errors="replace")[-500:])]


def _act(action, folder):
    try:
        os.setsid()
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False, buffering=1)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        value = pickle.dumps(action())
        (folder / "result.new").write_bytes(value)
        (folder / "result.new").rename(folder / "result")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _not_refused(pipeline, seen):
    if seen[0][0] != "raised":
        return f"not refused: its loop saw {str(seen[:1])[:200]}"
    text = seen[1][1]
    is_said = re.search(pipeline.refused, text) and len(text.splitlines()) == 1
    return "" if is_said else f"refused with other words: {text}"


def difference(expected, seen):
    """The first one; nothing where the two saw the same. Torch says more than the exception of a worker."""
    for one, other in zip(expected, seen):
        if one != other and (one[0] != "which said" or other[1] not in one[1]):
            return f"{one[0]}: {_first_difference(one, other)}"[:600] + _said(seen)
    if len(expected) == len(seen):
        return ""
    more, who = (expected, "reference") if len(expected) > len(seen) else (seen, "registered")
    return f"only the {who} loop saw {str(more[min(len(expected), len(seen))])[:200]}"


def _said(seen):
    return f" (it said: {seen[-1][1]})" if seen and seen[-1][0] == "which said" else ""


def _first_difference(one, other):
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)) and len(one) == len(other):
        return next(_first_difference(*pair) for pair in zip(one, other) if pair[0] != pair[1])
    return f"expected {str(one)[:250]}, saw {str(other)[:250]}"
