"""The data workers of a taas-run, as this process sees them. Without a launcher, and without --cpus, there are none."""

from __future__ import annotations

import atexit
import os
import secrets
import sys
import weakref
from typing import Any, Callable

from torch.utils.data import DataLoader

from ..runtime import events, native
from ..runtime.plan import Plan, Watched
from ..sending.recipe import recipe_of
from ..sending.state import Frame
from .remote import RemoteStream

_watched: Watched | None = None
_connected: RunWorkers | None = None
_left_to_the_parent: list[RunWorkers | None] = []


def plan() -> Plan | None:
    """What the run says of data delivery; None where it says nothing.

    Raises RuntimeError for a plan that cannot be read.
    """
    global _watched
    if _watched is None and (path := os.environ.get("TAAS_DATA_PLAN")):
        _watched = Watched(path)
    return _watched.plan if _watched else None


def connected() -> RunWorkers | None:
    """This process' connection to the run's data workers; None where there are none.

    Raises RuntimeError where there are, but no native module.
    """
    global _connected
    said = plan()
    if _connected is None and said is not None and said.workers:
        if native.module is None:
            raise RuntimeError(
                f"taas: the native module is missing ({native.why_absent}), and without it this rank cannot take "
                "batches from data workers; run with --cpus 0, or install taas with it"
            )
        assert _watched is not None
        _connected = RunWorkers(_watched)
    return _connected


def forget() -> None:
    """Ends the connection: what the environment says now is another run."""
    global _watched, _connected
    if _connected:
        _connected.disconnect()
    _watched = _connected = None


class RunWorkers:
    """One client for all registered loaders, under the run's budget for a rank."""

    def __init__(self, watched: Watched) -> None:
        atexit.register(self.disconnect)
        self._watched = watched
        said = watched.plan
        self.budget_bytes = said.buffer_bytes
        self.client = native.module.Client(said.run, said.key, said.encryption, said.compression, said.buffer_bytes)
        self._present: list[int] = []
        self._streams: weakref.WeakSet[RemoteStream] = weakref.WeakSet()
        self._persistent: set[int] = set()  # tokens of registrations with persistent_workers that have had a loop
        self._take(said)

    def opening(self, registered: Any, loader: DataLoader) -> Callable[[], RemoteStream]:
        """Of a stream over the loader as it is now. Raises TypeError when it cannot be sent."""
        meant, state = registered.sending.now(loader)
        recipe = recipe_of(loader)
        owner = registered.token if recipe.persistent else secrets.randbits(64)
        if recipe.persistent:
            self._persistent.add(owner)
        frame = Frame(owner, self._owners(), state)
        prepared, copies = registered.sending.is_imported, recipe.num_workers if recipe.keeps else 0
        return lambda: RemoteStream(self, meant, frame, prepared, copies, registered.device, loader.pin_memory)

    def release(self, token: int) -> None:
        """The loader whose registration has this token is unregistered, or gone."""
        self._persistent.discard(token)

    def named(self, loader: DataLoader) -> str:
        """What --loader calls it; nothing where it does not."""
        return next((name for name in self._watched.plan.loaders() if is_named(loader, name)), "")

    def count(self) -> int:
        """How many data workers there are."""
        return len(self._present)

    def index_of(self, number: int) -> int:
        """Tasks go to the places of the list, and to the next worker that there is where one has left."""
        place = number % len(self._watched.plan.workers)
        return place if place in self._present or not self._present else self._present[number % len(self._present)]

    def name_of(self, index: int) -> str:
        """The worker's name, for people."""
        workers = self._watched.plan.workers
        return (
            workers[index].get("name") or f"data worker {index}"
            if 0 <= index < len(workers)
            else f"data worker {index}"
        )

    def tend(self) -> None:
        """Looks after the workers: called often."""
        if not self._watched.is_due():
            return
        for line in self.client.take_remarks():
            events.remark(line)
        if self._watched.has_changed():
            self._take(self._watched.plan)

    def opened(self, stream: RemoteStream) -> None:
        """A stream of this client: it must not outlive it."""
        self._streams.add(stream)

    def disconnect(self) -> None:
        """Ends the client, and all streams with it. What the program has of batches stays."""
        for stream in list(self._streams):
            stream.abandon()
        self.client = None

    def _owners(self) -> tuple[int, ...]:
        """Of the copies that data workers keep for this process."""
        return tuple(self._persistent | {stream.owner for stream in self._streams if stream.is_open})

    def _take(self, plan: Plan) -> None:
        self._present = [
            index for index, worker in enumerate(plan.workers) if worker.get("address") or worker.get("unix")
        ]
        self.client.set_workers(native.addresses(plan.workers))


def is_named(loader: DataLoader, name: str) -> bool:
    """True when `loader` is what --loader names, so that data workers can import it themselves."""
    module_name, _, attribute = name.partition(":")
    modules = [sys.modules.get(module_name), _main_as(module_name)]
    return bool(name) and any(_attribute(module, attribute) is loader for module in modules if module)


def _main_as(name: str) -> Any:
    """The program's main module if it is the file of the module `name`."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == name:
        return main
    file = getattr(main, "__file__", None)
    last = os.path.join(*name.split(".")) + ".py" if name else ""
    return main if file and last and os.path.abspath(file).endswith(os.sep + last) else None


def _attribute(module: Any, attribute: str) -> Any:
    for part in attribute.split("."):
        module = getattr(module, part, None)
    return module


def _forget_in_child() -> None:
    """A fork of this process has no threads of the client.

    What there was is kept, so that nothing ends it.
    """
    global _watched, _connected
    if _connected:
        atexit.unregister(_connected.disconnect)
        _left_to_the_parent.append(_connected)
    _watched = _connected = None


os.register_at_fork(after_in_child=_forget_in_child)
