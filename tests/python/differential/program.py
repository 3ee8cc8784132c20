"""The training program that a pipeline is tried with: two epochs, draws between the batches, a death, a resumption."""

import contextlib
import itertools
import random
import signal
import sys
from typing import Any, Iterator, Sequence

import numpy
import taas
import torch
from conftest import as_with_one

from .looks import looks_of, without_folder
from .pipeline import Pipeline
from .process_state import random_states, seed, settings
from .ways import INTERRUPTED_AT, Way

BATCHES_AT_MOST = 60


class Program:
    """One run of `pipeline` in the way `way`. `seen` is what a program could know: a row of events.

    `workers` are the data workers.
    """

    def __init__(self, pipeline: Pipeline, way: Way, workers: Sequence[Any]) -> None:
        self._pipeline = _as_main(pipeline) if pipeline.is_script else pipeline
        self._way = way
        self._workers = workers
        self.seen: list[Any] = []

    def run(self) -> None:
        """All epochs. What is raised is seen, too."""
        with self._noting_exceptions():
            loader = self._loader()
            for epoch in range(self._pipeline.epochs):
                self._epoch(loader, epoch)
            self._end(loader)

    def run_until_interrupted(self) -> Any:
        """What a checkpoint holds: the loader's state and the random states, in the middle of the last epoch."""
        with self._noting_exceptions():
            loader = self._loader()
            for epoch in range(self._pipeline.epochs - 1):
                self._epoch(loader, epoch)
            self._epoch(loader, self._pipeline.epochs - 1, INTERRUPTED_AT)
            return loader.state_dict(), torch.get_rng_state(), random.getstate(), numpy.random.get_state()

    def run_on(self, state: Any) -> None:
        """In another process, which has drawn other random numbers: from the checkpoint to the end."""
        with self._noting_exceptions():
            loader = self._loader()
            seed(99)
            loader.load_state_dict(state[0])
            torch.set_rng_state(state[1])
            random.setstate(state[2])
            numpy.random.set_state(state[3])
            self._epoch(loader, self._pipeline.epochs - 1, first=INTERRUPTED_AT)
            self._end(loader)

    def _loader(self) -> Any:
        seed(11)
        loader = self._pipeline.make(self._way.num_workers)
        return taas.register(loader) if self._way.is_registered else as_with_one(loader)

    def _epoch(self, loader: Any, epoch: int, stop: int = BATCHES_AT_MOST, first: int = 0) -> None:
        self._pipeline.before_epoch(loader, epoch)
        self._samples, number = [], first - 1
        for number, batch in enumerate(itertools.islice(loader, stop - first), first):
            self._step(loader, epoch, number, batch)
        if self._pipeline.any_order:
            self.seen.append((f"samples of epoch {epoch}", sorted(self._samples)))
        if stop == BATCHES_AT_MOST:
            self.seen.append(
                (f"end of epoch {epoch} after {number + 1} batches", random_states(), _generator_of(loader))
            )

    def _step(self, loader: Any, epoch: int, number: int, batch: Any) -> None:
        if self._pipeline.any_order:
            self._samples += [str(looks_of(sample)) for sample in batch]
        else:
            self.seen.append((f"batch {number} of epoch {epoch}", looks_of(batch)))
        self._pipeline.each_step(loader, number)
        self.seen.append(
            (
                f"random states after batch {number} of epoch {epoch}",
                random_states(),
                float(torch.rand(())),
                random.random(),
                float(numpy.random.rand()),
            )
        )
        if self._way.kills and number == 1:
            _kill_one(self._workers)

    def _end(self, loader: Any) -> None:
        if self._way.is_registered:
            taas.unregister(loader)
        self.seen.append(
            ("settings at the end", sorted((key, without_folder(repr(value))) for key, value in settings().items()))
        )

    @contextlib.contextmanager
    def _noting_exceptions(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.seen.append(("raised", f"{type(error).__module__}.{type(error).__qualname__}"))
            self.seen.append(("which said", str(error)))


def _as_main(pipeline: Pipeline) -> Pipeline:
    """The pipeline of the same name, its file having run as the program's main module."""
    sys.argv = [str(pipeline.path)]
    sys.path.insert(0, str(pipeline.path.parent))
    main = sys.modules["__main__"] = type(sys)("__main__")
    main.__file__ = str(pipeline.path)
    exec(compile(pipeline.path.read_text(), main.__file__, "exec"), vars(main))
    return getattr(main, pipeline.make.__name__).pipeline


def _generator_of(loader: Any) -> Any:
    return loader.generator and looks_of(loader.generator.get_state())


def _kill_one(workers: Sequence[Any]) -> None:
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):  # the pipeline's own code has ended it
            return signal.pidfd_send_signal(worker.fileno(), signal.SIGKILL)
