"""An iterable dataset whose batches are dealt over the ranks: `taas.register(loader, shared=True)`.

Each logical worker's shard is dealt by itself, by whoever reads it: see worker.dealt_shard. The ranks read with the
same seeds, and compare what they have read.
"""

from __future__ import annotations

from typing import Protocol

from .seeds import Seeds
from .task import Dealing, Task


class Agreement(Protocol):
    """How ranks agree: see CommonOrder."""

    def begin_loop(self) -> None: ...
    def agreed(self, own: str) -> str: ...
    def compare_samples(self, where: str, read: str) -> None: ...


class CommonStream:
    """One loader's stream in one rank."""

    def __init__(self, dealing: Dealing, agreement: Agreement) -> None:
        self.dealing = dealing
        self._agreement = agreement

    def begin_loop(self, own: Seeds) -> Seeds:
        """The seeds of one more loop: those of rank 0. `own` are what this rank would have by itself."""
        self._agreement.begin_loop()
        initial, _, ordinal, epoch = map(int, self._agreement.agreed(" ".join(map(str, own))).split())
        return Seeds(initial, 0, ordinal, epoch)

    def read(self, task: Task, digest: int, is_end: bool) -> None:
        """Compares digests of all samples that were read for this task. Raises UnequalOrder."""
        batches = task.turn + 1
        if is_end or batches & (batches - 1) == 0:
            self._agreement.compare_samples(f"{task.logical_worker}/{'end' if is_end else batches}", str(digest))
