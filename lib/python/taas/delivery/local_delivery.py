"""Data workers on this machine, where there is no taas-run: as many as the loader has num_workers, one at least.

TAAS_DATA_WORKERS sets another number of processes; what they make does not depend on it.
"""

from __future__ import annotations

import atexit
import functools
import os
import secrets
import socket
import time
from typing import Any, Callable

from torch.utils.data import DataLoader

from ..code.recipe import recipe_of
from ..dataset.definition import Definition, Inherited
from ..dataset.shared_copies import values_of
from ..program.program_state import Capture, Captures, digest_of, with_shared
from ..runtime import native
from ..runtime.plan import Plan, write_new
from ..worker.processes import Starter, fork, program
from .base import Delivery
from .bundles import Bundles
from .feed import Opening
from .pool import Pool
from .remote import RemoteStream, Workers

_BUFFER_BYTES = 1 << 30
_TEND_EVERY_SECONDS = 0.05


class Local(Delivery, Workers):
    """Shared by all loaders of one start method: one client, one budget (TAAS_DATA_BUFFER_BYTES, 1 GiB).

    Workers are kept from loop to loop, until the last loader is unregistered or the program ends.
    """

    def __init__(self) -> None:
        Workers.__init__(self)
        self.budget_bytes = int(os.environ.get("TAAS_DATA_BUFFER_BYTES") or _BUFFER_BYTES)
        self._pool: Pool | None = None
        self._tended = 0.0
        self._users: set[int] = set()
        self._captures = Captures(same_machine=True, are_forks=self.is_forked)
        self._process = os.getpid()
        self._run = secrets.token_hex(8)
        self._key = secrets.token_hex(32)
        atexit.register(self._close)

    def opener(self, registered: Any, loader: DataLoader) -> Opening:
        self._users.add(registered.token)
        self._pool = self._pool or Pool()
        capture = self._captures.capture(registered.token, loader, registered.has_begun)
        definition = self._definition(registered, loader, capture)
        state = with_shared(capture.state, values_of(definition.shared))
        self._pool.starter = self._pool.starter or self._starter(self._pool)
        has_grown = self._pool.grow(_workers_for(loader))
        if self.client is None:
            self.client = native.module.Client(self._run, self._key, "plain", "none", self.budget_bytes)
        if has_grown:
            self.client.set_workers(
                native.addresses(
                    [{"name": self.name_of(index), "unix": path} for index, path in enumerate(self._pool.paths())]
                )
            )
        shares_memory = capture.shares_memory or registered.fingerprint.shares_memory(loader, self.is_forked)
        return Opening(
            definition.digest + digest_of(state),
            lambda: Bundles(RemoteStream(self, definition, state, shares_memory=shares_memory)),
            shares_memory,
        )

    def release(self, token: int) -> None:
        self._users.discard(token)
        self._captures.forget(token)
        if not self._users:
            self._close()

    def count(self) -> int:
        return len(self._pool.paths()) if self._pool else 0

    def index_of(self, shard: int) -> int:
        return shard % self.count()

    def name_of(self, index: int) -> str:
        return f"data worker {index}"

    def tend(self) -> None:
        now = time.monotonic()
        if self._pool and now - self._tended > _TEND_EVERY_SECONDS:
            self._tended = now
            self._pool.tend(self._is_as_at_the_start)

    def batch_came(self) -> None:
        if self._pool:
            self._pool.batch_came()

    def pids(self) -> list[int]:
        """For tests and people: the workers' process ids."""
        return self._pool.pids() if self._pool else []

    def _is_as_at_the_start(self) -> bool:
        """Whether a worker that is started now is as those that were started for the loops."""
        return True

    def _definition(self, registered: Any, loader: DataLoader, capture: Capture) -> Definition:
        """What workers are to load."""
        raise NotImplementedError

    def _starter(self, pool: Pool) -> Starter:
        raise NotImplementedError

    def _close(self) -> None:
        self.disconnect()
        if self._pool:
            self._pool.close()
            self._pool = None

    def _serve(self, index: int, listener: socket.socket, leaving: int) -> None:
        from ..worker.worker import serve

        server = native.module.Server(self._run, self._key, "plain", -1, os.dup(listener.fileno()))
        serve(server, f"data worker {index}", self._process, is_fork=True, leaving=leaving)


def _workers_for(loader: DataLoader) -> int:
    """As many as the loader has, unless the environment has another number."""
    return max(1, int(os.environ.get("TAAS_DATA_WORKERS") or loader.num_workers))


class Forked(Local):
    """Workers are forks: they inherit the dataset, and the globals that its code looks at.

    What has changed is inherited by new workers.
    """

    is_forked = True

    def __init__(self) -> None:
        super().__init__()
        self._inherited: dict[int, Definition] = {}
        self._still_hold: dict[int, Callable[[], bool]] = {}

    def _definition(self, registered: Any, loader: DataLoader, capture: Capture) -> Definition:
        known = self._inherited.get(registered.token)
        if registered.fingerprint.has_changed(loader) or known is None or capture.unsendable:
            known = self._inherited[registered.token] = Inherited.add(recipe_of(loader), known)
            self._still_hold[registered.token] = functools.partial(
                registered.fingerprint.still_holds, recipe_of(loader)
            )
            if self._pool:
                self._pool.start_anew()
        return known

    def _is_as_at_the_start(self) -> bool:
        return all(still_holds() for still_holds in self._still_hold.values())

    def release(self, token: int) -> None:
        Inherited.forget(self._inherited.pop(token, None))
        self._still_hold.pop(token, None)
        super().release(token)

    def _starter(self, pool: Pool) -> Starter:
        return fork(self._serve)


class Started(Local):
    """Workers are programs of their own: the dataset is pickled for them."""

    def _definition(self, registered: Any, loader: DataLoader, capture: Capture) -> Definition:
        return registered.fingerprint.definition(loader, is_for_here=True)

    def _starter(self, pool: Pool) -> Starter:
        path = os.path.join(pool.folder, "plan.json")
        write_new(path, Plan(self._run, self._key, encryption="plain"))
        return program(path)
