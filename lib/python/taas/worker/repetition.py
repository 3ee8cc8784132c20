"""Whether a stream gives the same samples when read again: only then can it go on elsewhere, or from a state_dict."""

from __future__ import annotations

import contextlib
import os
from typing import Callable

from . import processes
from .process_end import die_with

_SIZE = 16


class Unrepeatable(RuntimeError):
    """The stream has given other samples."""

    def __init__(self) -> None:
        super().__init__(
            "taas: this stream gives other samples when it is read again, so it cannot go on where a data worker "
            "died, or from a state_dict: seed its generators from torch.initial_seed(), not from the operating system"
        )


class SecondReading:
    """A fork that reads what this process reads. `read` returns a digest of 16 bytes."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._pipe, pipe = os.pipe()
        parent = os.getpid()

        def run() -> None:
            die_with(parent)
            with contextlib.suppress(Exception):
                os.write(pipe, read())

        try:
            self._pid = processes.forked(run)
        finally:
            os.close(pipe)

    def compare(self, digest: bytes) -> None:
        """Raises Unrepeatable. A second reading that came to nothing says nothing."""
        other = os.read(self._pipe, _SIZE)
        os.close(self._pipe)
        os.waitpid(self._pid, 0)
        if other and other != digest:
            raise Unrepeatable
