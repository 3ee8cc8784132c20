"""One run of a cell: starts taas-run, shows what comes, passes interrupts on, and ends with the run."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from typing import Any, Iterator

from .channel import Channel
from .errors import CellUsage, Interrupted
from .files.folder import CellFolder
from .lines import Lines
from .view import View

_TICK_SECONDS = 0.5
_PIECE = 1 << 16
_OF_THE_MACHINE = ("no GPU here", "accelerators that taas-run does not count")
"""In what taas-run says of a machine without GPUs: it is true of every cell."""
_STEPS = (
    (signal.SIGINT, "SIGINT to all ranks; interrupt again for SIGTERM"),
    (signal.SIGTERM, "SIGTERM to all ranks; interrupt again for SIGKILL"),
    (signal.SIGQUIT, "SIGKILL to all ranks"),
)


class Run:
    """Owns the launcher's process while execute() runs it. Other threads may look at it, and call kill()."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: CellFolder, view: View) -> None:
        self.name = ""
        self.folder = ""
        self.world_size = 0
        self.ranks: dict[int, str] = {}
        self.verdict: dict[str, Any] | None = None
        self.failures: dict[int, dict[str, Any]] = {}
        self.pulled: dict[str, Any] | None = None
        self.began = time.time()
        self.interrupts = 0
        self._command, self._environment = command, environment
        self._words: list[str] = []
        self._view = view
        self._selector = selectors.DefaultSelector()
        self._channel = Channel(folder.socket, self._selector, self._receive)
        self._begun = {"stdout": Lines(), "stderr": Lines()}
        self._complaints: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def exit_code(self) -> int | None:
        """None while the run lasts."""
        return self._process.returncode if self._process else None

    def kill(self) -> None:
        """Ends the run with all its processes: a second signal that stops it makes the launcher kill them."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.send_signal(signal.SIGQUIT)

    def execute(self) -> int:
        """Starts the run and shows it until it ends; returns its exit code.

        Raises Interrupted, and CellUsage for a refused command. No process is left, however this ends: the launcher's
        keeper kills what the launcher leaves.
        """
        try:
            with self._interrupts():
                process = self._start()
                self._serve(process)
                code = process.wait()
        except BaseException:
            if self._process:
                self._process.kill()
                self._process.wait()
            raise
        finally:
            self._channel.close()
            self._selector.close()
        self._conclude(code)
        if self.interrupts:
            raise Interrupted("the cell was interrupted, and its processes have ended")
        if self.verdict is None:
            raise CellUsage("\n".join(self._complaints) or f"taas-run ended with code {code}")
        return code

    def _start(self) -> subprocess.Popen[bytes]:
        process = self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        if self.interrupts:
            process.kill()
        return process

    def _conclude(self, code: int) -> None:
        if self.world_size:
            ended = "ran" if code == 0 else "were interrupted" if self.interrupts else "ended with a failure"
            self._view.announce(f"{self.world_size} ranks {ended} ({time.time() - self.began:.1f} s)", self.world_size)
        self._view.flush()

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        pipes: dict[str, Any] = {"stdout": process.stdout, "stderr": process.stderr}
        for name, pipe in pipes.items():
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, lambda name=name, pipe=pipe: self._read(name, pipe))
        open_pipes = set(pipes.values())
        while open_pipes & {key.fileobj for key in self._selector.get_map().values()}:
            for key, _ in self._selector.select(_TICK_SECONDS):
                key.data()
            while self._words:
                self._view.say(self._words.pop(0))
            self._view.update()
            self._view.flush()
        self._channel.drain()

    def _read(self, name: str, pipe: Any) -> None:
        data = os.read(pipe.fileno(), _PIECE)
        lines = self._begun[name].add(data)
        if not data:
            lines += filter(None, [self._begun[name].rest()])
            self._selector.unregister(pipe)
            pipe.close()
        for line in lines:
            self._happen(json.loads(line)) if name == "stdout" else self._complain(line.decode(errors="replace"))

    def _complain(self, line: str) -> None:
        self._complaints.append(line.removeprefix("taas-run: "))
        if self.world_size:
            self._view.say(line)

    def _happen(self, event: dict[str, Any]) -> None:
        handler = getattr(self, f"_on_{event.get('event') or event.get('action')}", None)
        if handler:
            handler(event)

    def _on_output(self, event: dict[str, Any]) -> None:
        self._view.line(
            event["rank"],
            event["stream"],
            event["text"],
            progress=event.get("progress", False),
            is_open=event.get("open", False),
            fetch=self._channel.drain,
        )

    def _on_message(self, event: dict[str, Any]) -> None:
        if event["level"] == "debug" or self.interrupts:  # then it is this package that says what is happening
            return
        if any(words in event["text"] for words in _OF_THE_MACHINE):
            return self._view.note(event["text"])
        self._view.say(f"taas-run: {event['text']}")

    def _on_nodes_gathered(self, event: dict[str, Any]) -> None:
        self.world_size = event["world_size"]
        self._view.announce(f"{self.world_size} ranks are running", self.world_size)

    def _on_rank_spawned(self, event: dict[str, Any]) -> None:
        self.ranks[event["rank"]] = f"running (process {event['pid']})"

    def _on_rank_exited(self, event: dict[str, Any]) -> None:
        status = event["status"]
        end = _signal_name(status["signal"]) if status["signal"] else f"code {status['code']}"
        self.ranks[event["rank"]] = f"ended ({end})"
        if path := event["evidence"].get("stderr_path"):
            self.folder = self.folder or os.path.dirname(os.path.dirname(path))

    def _on_report_failure(self, event: dict[str, Any]) -> None:
        if event["restarting"]:
            self._view.say(f"taas-run: {event['verdict']['summary']}; all ranks start again")

    def _on_finish(self, event: dict[str, Any]) -> None:
        self.verdict = event["verdict"]

    def _receive(self, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == "failure":
            self.failures[message["rank"]] = message
        elif kind == "pulled":
            self.pulled = message
        elif kind == "hello":
            self.folder, self.name = message["folder"] or self.folder, message["run"]
        else:
            self._view.keep(message)

    @contextlib.contextmanager
    def _interrupts(self) -> Iterator[None]:
        """Inside, SIGINT of this process is no exception but a step: the launcher is in a session of its own."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _on_interrupt(self, *_: Any) -> None:
        number, words = _STEPS[min(self.interrupts, len(_STEPS) - 1)]
        self.interrupts += 1
        self._words.append(f"taas: {words}")  # said by the loop: a handler may stand in the middle of a write
        if self._process and self._process.poll() is None:
            self._process.send_signal(number)


def _signal_name(number: int) -> str:
    """SIGKILL; signal 40, as most real-time signals have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
