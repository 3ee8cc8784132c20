"""A stream whose small batches are asked for many at a time, once it is known that they are small and quickly made."""

from __future__ import annotations

import collections
from typing import Any

from ..batch import untree
from ..batch.outcome import Bundle, Ended, Failed, Outcome, Ready, Refused
from ..order.task import Task
from ..runtime import native
from ..worker.answer import Over, Raised
from ..worker.bundled import Unbundled
from ..worker.errors import unpickled
from .feed import Rows

_MOST = 32
_MOST_BYTES = 64 << 10
_MOST_SECONDS = 0.002
_SMALL_BYTES = 8 << 10
_SINGLE_FIRST = 8
_ROWS_AT_LEAST = 32
_AGAIN_AFTER = 256
_WINDOW_AT_MOST = 1024


class Bundles:
    """Tasks that one logical worker makes go together.

    A bundle is asked for when it is full, or when the loop would wait for it.

    A bundle that cannot be made is taken apart again: who is to blame for it is to be said of one batch.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._at_once = 1
        self._singles_left = _SINGLE_FIRST
        self._is_deciding = rows.takes_bundles
        self._rows_at_least = max(rows.window(), _ROWS_AT_LEAST)
        self._open: dict[int, list[tuple[int, Task]]] = {}
        self._sent: collections.deque[list[tuple[int, Task]]] = collections.deque()
        self._here: dict[int, Outcome] = {}
        self._submitted = self._taken = 0

    def submit_task(self, task: Task) -> None:
        gathered = self._open.setdefault(task.logical_worker, [])
        gathered.append((self._submitted, task))
        self._submitted += 1
        if len(gathered) >= self._at_once:
            self._send(task.logical_worker)

    def next(self, seconds: float) -> Outcome | None:
        """The next task's outcome; None when `seconds` are over first."""
        while self._taken not in self._here:
            for worker, gathered in list(self._open.items()):
                if len(self._sent) < 2 or gathered[0][0] == self._taken:
                    self._send(worker)
            outcome = self._rows.next(seconds)
            if outcome is None:
                return None
            self._take(self._sent.popleft(), outcome)
        self._taken += 1
        return self._here.pop(self._taken - 1)

    def window(self) -> int:
        """How many tasks may be under way: few while it is not known how many are to be asked for at once."""
        rows = self._rows.window()
        if self._at_once == 1 and not self._is_deciding:
            return rows
        return min(_WINDOW_AT_MOST, min(rows, self._rows_at_least) * self._at_once)

    def statistics(self) -> dict[str, int]:
        return self._rows.statistics()

    def tend(self) -> None:
        self._rows.tend()

    def pin(self) -> None:
        self._rows.pin()

    def close(self) -> None:
        self._rows.close()

    def _send(self, logical_worker: int) -> None:
        gathered = self._open.pop(logical_worker)
        self._rows.submit([task for _, task in gathered])
        self._sent.append(gathered)

    def _take(self, asked: list[tuple[int, Task]], outcome: Outcome | Bundle) -> None:
        if isinstance(outcome, Refused) and len(asked) > 1:
            self._at_once, self._singles_left = 1, _AGAIN_AFTER
            for each in asked:
                self._rows.submit([each[1]])
                self._sent.append([each])
        elif isinstance(outcome, Bundle):
            self._here.update(zip((place for place, _ in asked), outcome.outcomes))
            self._adapt(
                outcome.seconds / len(asked),
                max((each.size for each in outcome.outcomes if isinstance(each, Ready)), default=1),
            )
        else:
            self._here[asked[0][0]] = outcome
            self._count_single(outcome)

    def _count_single(self, outcome: Any) -> None:
        if not isinstance(outcome, Ready) or outcome.size > _SMALL_BYTES:
            self._singles_left = max(self._singles_left, _SINGLE_FIRST)
            self._is_deciding = False
            return
        self._singles_left -= 1
        if self._singles_left <= 0 and self._at_once == 1 and self._rows.takes_bundles:
            self._at_once, self._is_deciding = 2, False

    def _adapt(self, seconds: float, size: int) -> None:
        fits = int(min(_MOST, _MOST_SECONDS / max(seconds, 1e-6), _MOST_BYTES / max(size, 1)))
        self._at_once = max(1, min(2 * self._at_once, fits))
        if self._at_once == 1:
            self._singles_left = _AGAIN_AFTER


def bundle_of(description: str, payload: Any, where: str, apart: bool = True) -> Bundle:
    """`where` names the maker; for the rest see untree.decode."""
    answers = Unbundled(description, payload)
    outcomes: list[Outcome] = []
    for each in answers:
        if isinstance(each, Over):
            outcomes.append(Ended())
        elif isinstance(each, Raised):
            outcomes.append(Failed(unpickled(*each), each.text, where))
        else:
            described, part = each
            outcomes.append(Ready(untree.decode(described, part, apart), part.nbytes, native.digest(part), described))
    return Bundle(outcomes, answers.seconds)
