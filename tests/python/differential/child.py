"""Programs in processes of their own, forked from this one: torch is imported once for all of them."""

import os
import pathlib
import pickle
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from typing import Any, Callable


class Child:
    """A fork of this process that runs `action`, in a folder and a session of its own. Ended with all its processes."""

    def __init__(self, action: Callable[[], Any], seconds: float) -> None:
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="taas-way-"))
        self._deadline = time.monotonic() + seconds
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            self._run(action)
        self.fd = os.pidfd_open(self._pid)

    def seconds_left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def end(self) -> Any:
        """What the action gave, or what was written instead. Called when `fd` is readable, or its time is over."""
        self._kill_group()
        os.waitpid(self._pid, 0)
        os.close(self.fd)
        result = self._folder / "result"
        output = (self._folder / "output").read_text(errors="replace")
        value = pickle.loads(result.read_bytes()) if result.exists() else [("did not end, or died", output[-500:])]
        shutil.rmtree(self._folder, ignore_errors=True)
        return value

    def _kill_group(self) -> None:
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _run(self, action: Callable[[], Any]) -> None:
        try:
            os.setsid()
            output = os.open(self._folder / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False, buffering=1)
            os.environ["TMPDIR"] = str(self._folder)
            tempfile.tempdir = str(self._folder)
            value = pickle.dumps(action())
            (self._folder / "result.new").write_bytes(value)
            (self._folder / "result.new").rename(self._folder / "result")
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def run_all(actions: dict[Any, Callable[[], Any]], seconds: float, at_once: int = 2) -> dict[Any, Any]:
    """Runs the actions, so many of them at a time; each has so many seconds."""
    waiting, running, results = list(actions), {}, {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running[waiting[0]] = Child(actions[waiting[0]], seconds)
                waiting.pop(0)
            _, child = min(running.items(), key=lambda item: item[1].seconds_left())
            ready = select.select([each.fd for each in running.values()], [], [], child.seconds_left())[0]
            for key, each in list(running.items()):
                if each.fd in ready or each.seconds_left() == 0:
                    results[key] = running.pop(key).end()
    finally:
        for each in running.values():
            each.end()
    return results
