"""A data worker: `python -m taas.worker` makes the batches that ranks ask for, one after the other, in one thread."""

from __future__ import annotations

import collections
import os
import signal
import sys
import time
from typing import Any, Callable

from ..code.recipe import Recipe
from ..dataset import definition
from ..order import task, unseeded
from ..program import program_state
from ..program.program_state import ProgramState
from ..runtime import events, native
from ..runtime.plan import Plan, read
from . import careful, processes
from .answer import Answer, Made, NoMemory, Over, answer_to, raised
from .collate_maps import CollateMaps
from .fetch import Fetcher
from .logical_process import LogicalProcess
from .logical_processes import LogicalProcesses, no_process
from .prepare import NotImported, Preparation
from .store import Prepared

_PATIENCE_SECONDS = 1.0
_QUICK_SECONDS = 0.002
_MOST_ASKED = 4  # of the processes of logical workers: more would look like a slow worker to the rank
_RECIPES_KEPT = 4  # at least; a recipe that some loader of some rank was at last is kept in any case


class Worker:
    """Answers the jobs of a native Server. `busy` counts the seconds that this took."""

    def __init__(self, server: Any, name: str, preparation: Preparation | None = None) -> None:
        self.batches = 0
        self.busy = 0.0
        self._server = server
        self._name = name
        self._preparation = preparation
        self._state = ProgramState(self._differs)
        self._payloads = program_state.Payloads()
        self._processes = LogicalProcesses()
        self._collate_maps = CollateMaps()
        self._fetchers: collections.OrderedDict[str, Fetcher] = collections.OrderedDict()
        self._last_of: dict[tuple[int, int], str] = {}
        self._asked: collections.deque[tuple[Any, LogicalProcess]] = collections.deque()
        self._is_quick = False
        self._digest_in_force = ""

    @property
    def waits(self) -> bool:
        """Whether there are answers of logical workers' processes to be sent: see finish()."""
        return bool(self._asked)

    def answer(self, job: Any) -> None:
        """Makes the job's batch, and sends it or what came instead of it; or has a logical worker's process make it."""
        start = time.monotonic()
        state, payload = self._payloads.split(job.payload)
        self._answer(job, state, payload)
        self.batches += 1
        self.busy += time.monotonic() - start

    def finish(self) -> None:
        """Sends what was asked for first."""
        start = time.monotonic()
        self._finish()
        self.busy += time.monotonic() - start

    def pass_remarks_on(self) -> None:
        """What the server has to say, to the launcher."""
        for line in self._server.take_remarks():
            events.remark_once(f"{self._name}: {line}")

    def _answer(self, job: Any, state: bytes, payload: bytes) -> None:
        if prepared := self._prepared(job, state, payload):
            self._server.put(job, prepared.description, prepared.buffers)
            return
        answer = self._answer_to(job, state, payload)
        if answer is not None:
            self._send(job, answer)

    def _answer_to(self, job: Any, state: bytes, payload: bytes) -> Answer | None:
        try:
            self._state.enter(state)
            fetcher = self._fetcher(job.digest)
            if job.digest != self._digest_in_force:
                self._state.use(fetcher.recipe)
                self._digest_in_force = job.digest
            wanted, stream = task.from_bytes(payload), (job.client, job.stream)
            if fetcher.recipe.copies:
                fetcher.recipe.copies.take(program_state.shared(state))
            self._collate_maps.enter(job.digest)
            self._use(job.digest, (wanted.seeds.rank, wanted.seeds.ordinal))
        except MemoryError as error:
            return NoMemory(str(error) or "MemoryError")
        except BaseException as error:
            return raised(error)
        if fetcher.recipe.needs_processes:
            return self._ask(job, fetcher.recipe, state, payload, wanted, stream)
        self._finish_all()
        if job.has_ended_a_worker and wanted.turn < 0:
            return careful.answer_to(wanted, fetcher.recipe, stream, self._processes.begin)
        return answer_to(wanted, fetcher, stream)

    def _ask(
        self, job: Any, recipe: Recipe, state: bytes, payload: bytes, wanted: task.Task, stream: Any
    ) -> Answer | None:
        """The answer, where it is there already. While a process makes a quick batch it is given the next ones.

        Whoever has ended a worker is alone under way, so that nobody else is taken for the culprit.
        """
        about = job.digest, recipe, state, wanted, stream
        is_alone = job.has_ended_a_worker or not self._processes.running(*about)
        if is_alone:
            self._finish_all()
        try:
            process = self._processes.process_for(*about)
        except OSError as error:
            return no_process(error)
        self._processes.ask(process, payload, stream)
        self._asked.append((job, process))
        if is_alone or not self._is_quick or len(self._asked) > _MOST_ASKED:
            self._finish()
        return None

    def _finish(self) -> None:
        job, process = self._asked.popleft()
        start = time.monotonic()
        answer = self._processes.receive(process)
        self._is_quick = time.monotonic() - start < _QUICK_SECONDS
        self._send(job, answer)

    def _finish_all(self) -> None:
        while self._asked:
            self._finish()

    def _send(self, job: Any, answer: Answer) -> None:
        if isinstance(answer, Made):
            self._put(job, answer)
        elif isinstance(answer, Over):
            self._server.exhausted(job)
        elif isinstance(answer, NoMemory):
            self._server.give_back(job, f"{self._name} has not enough memory for it ({answer.why})")
        else:
            self._server.raise_(job, *answer)

    def _put(self, job: Any, made: Made) -> None:
        try:
            self._server.put(job, *made)
        except MemoryError as error:
            self._send(job, NoMemory(str(error) or "MemoryError"))
        except BaseException as error:
            self._send(job, raised(error))

    def _prepared(self, job: Any, state: bytes, payload: bytes) -> Prepared | None:
        known = self._preparation
        return known.take(job.digest, state, payload) if known else None

    def _differs(self, what: str, why: str) -> None:
        events.remark_once(f"{self._name}: {what} is not as in the training process: {why}")

    def _fetcher(self, digest: str) -> Fetcher:
        if digest not in self._fetchers:
            self._fetchers[digest] = self._load(digest)
        return self._fetchers[digest]

    def _use(self, digest: str, loader: tuple[int, int]) -> None:
        """`loader` is at this recipe: those that no loader is at any more are let go."""
        if self._last_of.get(loader) == digest:
            return
        self._fetchers.move_to_end(digest)
        self._last_of[loader] = digest
        old = [digest for digest in self._fetchers if digest not in self._last_of.values()]
        for digest in old[: max(0, len(self._fetchers) - _RECIPES_KEPT)]:
            del self._fetchers[digest]
            self._collate_maps.forget(digest)
            self._server.unloaded(digest)

    def _load(self, digest: str) -> Fetcher:
        """What a rank sent may be a whole dataset: there is one copy of it afterwards."""
        try:
            fetcher = Fetcher(self._loaded(digest))
        except BaseException:
            self._server.unloaded(digest)
            raise
        self._server.loaded(digest)
        return fetcher

    def _loaded(self, digest: str) -> Recipe:
        data, memory_fd, memory_bytes = self._server.definition(digest)
        try:
            return definition.load(data, memory_fd, memory_bytes)
        finally:
            if memory_fd >= 0:
                os.close(memory_fd)


def serve(
    server: Any,
    name: str,
    parent: int,
    preparation: Preparation | None = None,
    report: Callable[[Worker], None] = lambda _: None,
) -> None:
    """Works until the process that started it is gone: `parent`, which may be gone already.

    Whenever no rank asks for something, it prepares. `report` is called about once a second.
    """
    native.module.tune_allocator()
    unseeded.stay()
    worker = Worker(server, name, preparation)
    told = time.monotonic()
    while os.getppid() == parent:
        unprepared = None if preparation is None or preparation.is_done else preparation
        job = server.take(0.0 if unprepared or worker.waits else _PATIENCE_SECONDS)
        if job is not None:
            worker.answer(job)
        elif worker.waits:
            worker.finish()
        elif unprepared:
            unprepared.step()
        if (now := time.monotonic()) - told >= _PATIENCE_SECONDS:
            told = now
            worker.pass_remarks_on()
            report(worker)
            if preparation is not None and preparation.is_done:
                preparation.report()


def _preparation(plan: Plan, index: int) -> Preparation | None:
    """What --loader names. When it cannot be imported the worker ends, with a line that the launcher shows."""
    if not plan.loaders():
        return None
    try:
        return Preparation(plan, index)
    except NotImported as error:
        sys.exit(str(error))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")


class _Report:
    """Tells the launcher how much of the time the worker works."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._began = time.monotonic()

    def __call__(self, worker: Worker) -> None:
        events.send(
            events.DataWork(
                self._index, worker.batches, round(worker.busy, 3), round(time.monotonic() - self._began, 3)
            )
        )


def main() -> None:
    """Serves the sockets of TAAS_DATA_LISTEN for the run of TAAS_DATA_PLAN."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    plan, index = read(os.environ["TAAS_DATA_PLAN"]), int(os.environ["TAAS_DATA_WORKER"])
    tcp, unix = (int(fd) if fd != "-" else -1 for fd in os.environ["TAAS_DATA_LISTEN"].split(","))
    server = native.module.Server(plan.run, plan.key, plan.encryption, tcp, unix)
    parent = os.getppid()
    preparation = _preparation(plan, index)
    processes.begin_as_torch_does()
    serve(server, f"data worker {index}", parent, preparation, _Report(index))
