"""How many threads torch computes with: a sum's last bits depend on it."""

from __future__ import annotations

import concurrent.futures
import contextlib
from typing import Any, Callable, Iterator

import torch


class ForkedThreads:
    """Runs work that needs several threads, in a fork too.

    OpenMP's threads stayed in the parent, and the thread that the fork began with would wait for them for ever: a new thread
    starts new ones.
    """

    def __init__(self, is_fork: bool) -> None:
        self._is_fork = is_fork
        self._other: concurrent.futures.ThreadPoolExecutor | None = None

    def run(self, threads: int, work: Callable[..., None], *arguments: Any) -> None:
        """Returns when `work` is done."""
        if not self._is_fork or threads <= 1:
            work(*arguments)
            return
        self._other = self._other or concurrent.futures.ThreadPoolExecutor(1)
        self._other.submit(work, *arguments).result()


@contextlib.contextmanager
def of_a_worker(logical_worker: int) -> Iterator[None]:
    """Inside, this process computes with one thread, as the plain loader's workers; with num_workers=0 (-1) with its own ones."""
    before = torch.get_num_threads()
    if logical_worker < 0 or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
