"""A data worker: `python -m taas.worker` makes the batches that ranks ask for, one after the other, in one thread."""

from __future__ import annotations

import collections
import os
import signal
import sys
import time
import traceback
from typing import Any, Callable

import torch

from ..order import task
from ..runtime import events, native
from ..runtime.plan import read
from ..sending import by_value, definition, modules
from ..sending.definition import Source
from ..sending.recipe_pickle import Arrived
from ..sending.state import Frame, Payloads, State
from .making import Copies, Copy
from .prepare import Preparation

_PATIENCE_SECONDS = 1.0
_MOST_LINES = 4
_MOST_BYTES = 62 << 20
_MOST_TEXT = 1 << 20
_RECIPES_KEPT = 4  # at least; a recipe that some loader of some rank was at last is kept in any case


class Worker:
    """Answers the jobs of a native Server. `busy` counts the seconds that this took."""

    def __init__(self, server: Any, name: str, preparation: Preparation | None = None) -> None:
        self.batches = 0
        self.busy = 0.0
        self._server = server
        self._name = name
        self._preparation = preparation
        self._state = State(self._differs)
        self._program = b""  # its state
        self._payloads = Payloads()
        self._loaded: collections.OrderedDict[str, Copies] = collections.OrderedDict()
        self._last_of: dict[tuple[int, int], str] = {}
        self._copy: Copy | None = None  # that was at work last
        self._owners: dict[int, set[int]] = {}  # of copies, by rank
        self._speaks_for_all = os.environ.get("TAAS_DATA_WORKER") == "0"

    def answer(self, job: Any) -> None:
        """Makes the job's batch, and sends it or what came instead of it."""
        start = time.monotonic()
        try:
            self._server.put(job, self._buffers(job))
        except MemoryError as error:
            why = str(error) or "MemoryError"
            self._server.give_back(job, f"{self._name} has not enough memory for it ({why})")
        except BaseException as error:
            self._server.raise_(job, *_raised(error))
        self.batches += 1
        self.busy += time.monotonic() - start

    def pass_remarks_on(self) -> None:
        """What the server has to say, to the launcher."""
        for line in self._server.take_remarks():
            events.remark_once(f"{self._name}: {line}")

    def _buffers(self, job: Any) -> list[Any]:
        frame, payload = self._payloads.split(job.payload)
        if self._preparation and (prepared := self._preparation.take(job.digest, frame.state, payload)):
            return prepared
        self._program = frame.state
        wanted = task.from_bytes(payload)
        self._let_go(wanted, frame)
        copy = self._copies(job.digest).copy_for(wanted, job.stream, frame.owner)
        self._become(copy)
        self._use(job.digest, (wanted.seeds.rank, wanted.seeds.ordinal))
        return copy.encoded(wanted, job.stream, is_suspect=job.has_ended_a_worker)

    def _become(self, copy: Copy) -> None:
        """The process is as the program was when the loop began, and as the copy's code has made it."""
        if copy is self._copy:
            self._state.enter(self._program)
            return
        self._enter_program()
        copy.enter()
        self._copy = copy

    def _enter_program(self) -> None:
        """What comes next has nothing of the copy that was at work."""
        self._leave()
        self._state.enter(self._program)

    def _leave(self) -> None:
        if self._copy:
            self._copy.leave()
            self._copy = None

    def _let_go(self, wanted: task.Task, frame: Frame) -> None:
        """With a rank's new loop, its copies of loops that have ended: what they have opened is closed first."""
        if frame.owner not in self._owners.get(wanted.rank, ()):
            self._owners[wanted.rank] = owners = {frame.owner, *frame.others}
            self._leave()
            for copies in self._loaded.values():
                copies.let_go(wanted.rank, owners)

    def _differs(self, what: str, why: str) -> None:
        events.remark_once(f"{self._name}: {what} is not as in the training process: {why}")

    def _copies(self, digest: str) -> Copies:
        """What a rank sent may be a whole dataset: unless copies are made of it, there is one of it afterwards."""
        if digest not in self._loaded:
            try:
                self._enter_program()  # whose modules are imported, and whose objects made
                source = definition.source(digest, *self._server.definition(digest))
                self._loaded[digest] = Copies(lambda: self._load(source))
                self._compare(source.modules)
            except BaseException:
                self._server.unloaded(digest)
                raise
            self._server.loaded(digest)
        return self._loaded[digest]

    def _load(self, source: Source) -> Arrived:
        self._enter_program()
        arrived = source.load()
        torch.set_num_threads(1)  # as torch's own workers, whatever modules have set
        return arrived

    def _compare(self, program: dict[str, str]) -> None:
        """One data worker speaks for all."""
        lines = modules.differences(program) if self._speaks_for_all else []
        if more := len(lines[_MOST_LINES:]):
            lines[_MOST_LINES:] = [f"{more} more values of modules are not those of the import"]
        for line in lines:
            events.remark_once(line)

    def _use(self, digest: str, loader: tuple[int, int]) -> None:
        """`loader` is at this recipe: those that no loader is at any more are let go."""
        if self._last_of.get(loader) == digest:
            return
        self._loaded.move_to_end(digest)
        self._last_of[loader] = digest
        old = [digest for digest in self._loaded if digest not in self._last_of.values()]
        for digest in old[: max(0, len(self._loaded) - _RECIPES_KEPT)]:
            del self._loaded[digest]
            self._server.unloaded(digest)


def _raised(error: BaseException) -> tuple[str, str, bytes]:
    """Its type, its traceback, and itself as a pickle, which is empty where it cannot be pickled."""
    try:
        pickled = by_value.dumps(error, by_value.ByName)
        by_value.load(pickled)
    except Exception:
        pickled = b""
    if len(pickled) > _MOST_BYTES:
        return _raised(
            task.UndeliverableBatch(
                f"taas: the dataset raised a {type(error).__name__} of {len(pickled) / 1e6:.0f} MB, of which a "
                f"data worker can send {_MOST_BYTES / 1e6:.0f} MB"
            )
        )
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return type(error).__name__, text[-_MOST_TEXT:], pickled


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
    worker = Worker(server, name, preparation)
    told = time.monotonic()
    while os.getppid() == parent:
        unprepared = None if preparation is None or preparation.is_done else preparation
        job = server.take(0.0 if unprepared else _PATIENCE_SECONDS)
        if job is not None:
            worker.answer(job)
        elif unprepared:
            unprepared.step()
        if (now := time.monotonic()) - told >= _PATIENCE_SECONDS:
            told = now
            worker.pass_remarks_on()
            report(worker)
            if preparation is not None and preparation.is_done:
                preparation.report()


class _Report:
    """Tells the launcher how much of the time the worker works."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._began = time.monotonic()

    def __call__(self, worker: Worker) -> None:
        seconds = round(time.monotonic() - self._began, 3)
        events.send("work", worker=self._index, batches=worker.batches, busy=round(worker.busy, 3), seconds=seconds)


def main() -> None:
    """Serves the sockets of TAAS_DATA_LISTEN for the run of TAAS_DATA_PLAN."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    plan, index = read(os.environ["TAAS_DATA_PLAN"]), int(os.environ["TAAS_DATA_WORKER"])
    tcp, unix = (int(fd) if fd != "-" else -1 for fd in os.environ["TAAS_DATA_LISTEN"].split(","))
    server = native.module.Server(plan.run, plan.key, plan.encryption, tcp, unix)
    parent = os.getppid()
    try:
        preparation = Preparation(plan, index) if plan.loaders() else None
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    torch.set_num_threads(1)  # as torch's own workers
    serve(server, f"data worker {index}", parent, preparation, _Report(index))
