"""The training program that a pipeline is tried with: two epochs, draws between the batches, a death, a resumption."""

import contextlib
import dataclasses
import itertools
import os
import random
import signal
import sys
import warnings

import numpy
import taas
import torch
from conftest import as_with_one, seed

from .looks import digest, looks_of, without_folder

BATCHES_AT_MOST = 60
INTERRUPTED_AT = 2
"""The batch of the last epoch before which a resumed program is interrupted."""


@dataclasses.dataclass(frozen=True)
class Way:
    """How the program is run. A plain loader with num_workers=0 has one worker, as data workers count it."""

    num_workers: int
    data_workers: int = 2
    kills: bool = False
    resumes: bool = False

    def __str__(self):
        made = f"registered, data workers: {self.data_workers}" if self.data_workers else "plain"
        parts = [made, f"num_workers={self.num_workers}"]
        return ", ".join(parts + ["one dies"] * self.kills + ["resumed"] * self.resumes)


class Program:
    """One run of `pipeline` in the way `way`. `seen` is what a program could know: a row of events.

    `workers` are the data workers.
    """

    def __init__(self, pipeline, way, workers):
        self._pipeline = _as_main(pipeline) if pipeline.is_script else pipeline
        self._way, self._workers, self.seen = way, workers, []

    def run(self):
        """All epochs; or until it is interrupted, which gives a checkpoint. What is raised is seen, too."""
        with self._noting_exceptions():
            loader = self._loader()
            for epoch in range(self._pipeline.epochs - self._way.resumes):
                self._epoch(loader, epoch)
            if self._way.resumes:
                self._epoch(loader, self._pipeline.epochs - 1, stop=INTERRUPTED_AT)
                return loader.state_dict(), torch.get_rng_state(), random.getstate(), numpy.random.get_state()
            self._end(loader)

    def run_on(self, checkpoint):
        """In another process, which has drawn other random numbers: to the end."""
        with self._noting_exceptions():
            loader = self._loader()
            seed(99)
            loader.load_state_dict(checkpoint[0])
            torch.set_rng_state(checkpoint[1])
            random.setstate(checkpoint[2])
            numpy.random.set_state(checkpoint[3])
            self._epoch(loader, self._pipeline.epochs - 1, first=INTERRUPTED_AT)
            self._end(loader)

    def _loader(self):
        seed()
        loader = self._pipeline.make(self._way.num_workers)
        return taas.register(loader) if self._way.data_workers else as_with_one(loader)

    def _epoch(self, loader, epoch, stop=BATCHES_AT_MOST, first=0):
        self._pipeline.before_epoch(loader, epoch)
        number = first - 1
        for number, batch in enumerate(itertools.islice(loader, stop - first), first):
            self.seen.append((f"batch {number} of epoch {epoch}", looks_of(batch)))
            self._pipeline.each_step(loader, number)
            drawn = float(torch.rand(())), random.random(), float(numpy.random.rand())
            self.seen.append((f"random states after batch {number} of epoch {epoch}", random_states(), drawn))
            if self._way.kills and number == 1 and self._workers:
                signal.pidfd_send_signal(self._workers.pop(0).fileno(), signal.SIGKILL)
        if stop == BATCHES_AT_MOST:
            own = loader.generator and looks_of(loader.generator.get_state())
            self.seen.append((f"end of epoch {epoch} after {number + 1} batches", random_states(), own))

    def _end(self, loader):
        if self._way.data_workers:
            taas.unregister(loader)
        self.seen.append(("settings at the end", settings()))

    @contextlib.contextmanager
    def _noting_exceptions(self):
        try:
            yield
        except Exception as error:
            self.seen.append(("raised", f"{type(error).__module__}.{type(error).__qualname__}"))
            self.seen.append(("which said", str(error)))


def random_states():
    return digest(repr((torch.get_rng_state().tolist(), random.getstate(), numpy.random.get_state())).encode())


def settings():
    """What a program sets for all of itself, and a loop leaves as it is."""
    variables = {f"${name}": value for name, value in os.environ.items() if not name.startswith(("TAAS_", "TMPDIR"))}
    found = {
        **variables,
        "folder": os.getcwd(),
        "arguments": sys.argv,
        "path": sys.path,
        "default dtype": torch.get_default_dtype(),
        "threads of torch": torch.get_num_threads(),
        "sharing": torch.multiprocessing.get_sharing_strategy(),
        "recursion limit": sys.getrecursionlimit(),
        "warning filters": len(warnings.filters),
        "signal handlers": [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)],
        "numpy errors": numpy.geterr(),
    }
    return sorted((key, without_folder(repr(value))) for key, value in found.items())


def _as_main(pipeline):
    """The pipeline of the same name, its file having run as the program's main module."""
    sys.argv = [str(pipeline.path)]
    sys.path.insert(0, str(pipeline.path.parent))
    main = sys.modules["__main__"] = type(sys)("__main__")
    main.__file__ = str(pipeline.path)
    exec(compile(pipeline.path.read_text(), main.__file__, "exec"), vars(main))
    return getattr(main, pipeline.make.__name__).pipeline
