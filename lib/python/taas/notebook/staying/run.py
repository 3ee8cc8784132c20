"""A run whose ranks stay between cells: each cell is shown until its ranks have ended it, and what they print later with the next."""

from __future__ import annotations

import selectors
import signal
import socket
import threading
import time
from collections import deque
from typing import Any

from ..errors import Interrupted
from ..files.folder import CellFolder
from ..folds import numbers
from ..run import Run
from ..view import View

_MOST_KEPT = 1 << 20
"""Characters that are kept between cells; log files have all."""
_GRACE_SECONDS = 2.0
"""For the text before a cell's end, where a program has closed a stream whose mark then never comes."""
_PATIENCE_SECONDS = 3.0
"""After which ranks that do not come to an end are named."""


class Kept(View):
    """In the place of a cell's view while no cell runs: `show()` does later what was asked of it."""

    def __init__(self) -> None:
        super().__init__(None, [])
        self._calls: deque[tuple[str, int, tuple[Any, ...], dict[str, Any]]] = deque()
        self._size = self._dropped = 0

    def say(self, text: str) -> None:
        self._add("say", len(text), text)

    def note(self, text: str) -> None:
        self._add("note", len(text), text)

    def keep(self, message: dict[str, Any]) -> None:
        self._add("keep", len(str(message)), message)

    def line(self, rank: int, stream: str, text: str, **how: Any) -> None:
        self._add("line", len(text), rank, stream, text, **how)

    def _add(self, name: str, size: int, *arguments: Any, **named: Any) -> None:
        self._calls.append((name, size, arguments, named))
        self._size += size
        while self._size > _MOST_KEPT:
            self._size -= self._calls.popleft()[1]
            self._dropped += 1

    def show(self, view: View) -> None:
        """In `view`; what has become too much is counted."""
        if self._dropped:
            view.say(f"taas: the first {self._dropped} lines since the last cell are in the log files only: %taas logs RANK LINES")
        for name, _, arguments, named in self._calls:
            getattr(view, name)(*arguments, **named)


class StayingRun(Run):
    """Owns the launcher's process until end(), or until a rank has ended it. A thread reads between cells, so that no rank ever
    waits for a reader: it alone then touches what this object holds."""

    steps = ((signal.SIGINT, "the cell is interrupted, and its ranks stay; interrupt again to end them (SIGTERM)"), *Run.steps[1:])

    def __init__(self, name: str, command: list[str], environment: dict[str, str], folder: CellFolder) -> None:
        super().__init__(command, environment, folder, Kept())
        self.set_name = name
        self.ended: dict[int, dict[str, Any]] = {}
        self.idle_since = 0.0
        self._files = folder
        self._running: set[int] = set()
        self._begun_cell: set[int] = set()
        self._interrupted: set[int] = set()
        self._lag_since = self._ended_at = 0.0
        self._is_watched = False
        self._watch: threading.Thread | None = None
        self._waker, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ, self._wake)

    @property
    def is_alive(self) -> bool:
        """Whether the launcher is there."""
        return self._process is not None and self._process.returncode is None

    @property
    def is_busy(self) -> bool:
        """Whether a cell is running, which may be one of a subshell."""
        return bool(self._running)

    def run_cell(self, view: View, messages: dict[int, dict[str, Any]]) -> int | None:
        """Runs the cell that `messages` tell their ranks of; the first time it starts them. Returns None when they have ended it, and
        the run's exit code when the run has ended. Raises Interrupted, in either case, and CellUsage for a refused command."""
        began = time.monotonic()
        who = f"{len(messages)} rank{'s' * (len(messages) != 1)}"
        try:
            with self._interrupts():
                self._begin(view, set(messages))
                if self._process is None:
                    self._start()
                else:
                    view.announce(f"{who} {'are' if len(messages) != 1 else 'is'} running", self.world_size)
                    for rank, message in messages.items():
                        self._channel.send(rank, message)
                self._serve(self._cell_has_ended)
        except BaseException:
            self._kill()
            self._close()
            raise
        if not self._open_pipes:
            return self._finish()
        interrupted = self.interrupts > 0
        state = "ended with an exception" if self.failures else "stopped at an interrupt" if interrupted else "ran"
        view.announce(f"{who} {state} ({time.monotonic() - began:.1f} s)", self.world_size)
        view.flush()
        self._leave()
        if interrupted:
            raise Interrupted(f"the cell was interrupted; {numbers(sorted(messages))} of `{self.set_name}` and their variables stay")
        return None

    def end(self, view: View) -> int:
        """Lets the ranks end as programs do at their end, if they have not ended; returns the exit code. Raises Interrupted."""
        try:
            with self._interrupts():
                self._begin(view, set())
                for rank in range(self.world_size):
                    self._channel.send(rank, {"kind": "end"})
                self._serve(lambda: False)
        except BaseException:
            self._kill()
            self._close()
            raise
        return self._finish()

    def _begin(self, view: View, ranks: set[int]) -> None:
        """Takes over from the thread; shows what has come meanwhile."""
        self._running = ranks
        if self._watch:
            self._waker.send(b"w")
            self._watch.join()
            self._watch = None
        kept, self._view = self._view, view
        if isinstance(kept, Kept):
            kept.show(view)
        self.ended, self.failures, self.pulled = {}, {}, None
        self._begun_cell, self._interrupted = set(), set()
        self._lag_since = self._ended_at = 0.0

    def _leave(self) -> None:
        self._view, self._running, self._is_watched, self.interrupts = Kept(), set(), True, 0
        self.idle_since = time.time()
        self._watch = threading.Thread(target=self._read_on, name="taas-staying-ranks", daemon=True)
        self._watch.start()

    def _read_on(self) -> None:
        while self._open_pipes and self._is_watched:
            for key, _ in self._selector.select():
                key.data()
        if not self._open_pipes and self._process:
            self._process.wait()
            self._files.remove()

    def _wake(self) -> None:
        """Something is to be done by whoever reads: another cell, or an interrupt."""
        self._is_watched &= b"w" not in self._woken.recv(64)
        self._interrupt_ranks()

    def _close(self) -> None:
        self._selector.unregister(self._woken)
        self._waker.close()
        self._woken.close()
        super()._close()

    def _finish(self) -> int:
        assert self._process is not None
        code = self._process.wait()
        self._close()
        if self._running:
            self._conclude(code)
        self._running = set()
        return self._checked(code)

    def _cell_has_ended(self) -> bool:
        now = time.monotonic()
        if self.interrupts > 1:  # which ends the run
            return False
        if self._running - self.ended.keys():
            if self.failures or self.interrupts:
                self._name_who_runs_on(now)
            return False
        self._ended_at = self._ended_at or now
        marks = {(rank, stream, message["number"]) for rank, message in self.ended.items() for stream in ("stdout", "stderr")}
        return marks <= self._view.passed or now > self._ended_at + _GRACE_SECONDS

    def _name_who_runs_on(self, now: float) -> None:
        """Once, and again after an interrupt."""
        self._lag_since = self._lag_since or now
        behind = sorted(self._begun_cell - self.ended.keys())
        if not behind or now < self._lag_since + _PATIENCE_SECONDS:
            return
        self._lag_since, who = float("inf"), numbers(behind)
        if self.interrupts:
            self._view.say(f"taas: the cell goes on in {who}: in C++ code, such as a collective that waits for other ranks, Python "
                           f"cannot be interrupted; interrupt again to end `{self.set_name}` and lose its variables")
        else:
            failure = next(iter(self.failures.values()))
            self._view.say(f"taas: rank {failure['rank']} has failed ({failure['type']}), and the cell goes on in {who}: if it waits "
                           "for that rank, interrupt it; the ranks stay")

    def _receive(self, message: dict[str, Any]) -> None:
        if message["kind"] == "begun":
            self._begun_cell.add(message["rank"])
            self._interrupt_ranks()
        elif message["kind"] == "ended":
            self.ended[message["rank"]] = message
        else:
            super()._receive(message)

    def _interrupt_ranks(self) -> None:
        """Those that have begun the cell, each once: between cells they do not listen."""
        if self.interrupts:
            for rank in self._begun_cell - self.ended.keys() - self._interrupted:
                self._interrupted.add(rank)
                self._channel.interrupt(rank)

    def _signal(self, number: int) -> None:
        if number == signal.SIGINT and self._running:
            self._lag_since = 0.0
            self._waker.send(b"i")
        else:
            super()._signal(number)

    def _on_rank_exited(self, event: dict[str, Any]) -> None:
        super()._on_rank_exited(event)
        if event["rank"] in self._running and event["status"]["code"] == 0 and not event["status"]["signal"]:
            self._view.say(f"taas: rank {event['rank']} has ended itself, which ends `{self.set_name}`")
            self.kill()
