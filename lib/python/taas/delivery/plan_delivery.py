"""The data workers of a taas-run."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

from torch.utils.data import DataLoader

from ..dataset import definition
from ..dataset.shared_copies import values_of
from ..program.program_state import Captures, digest_of, with_shared
from ..runtime import events, native
from ..runtime.plan import Plan, Watched
from .base import Delivery
from .bundles import Bundles
from .feed import Opening
from .loop_forks import LoopForks
from .remote import RemoteStream, Workers


def delivery_of_plan(path: str) -> Delivery:
    """What the run's plan says: batches come from its data workers, or with `--cpus 0` from forks of this process."""
    watched = Watched(path)
    if watched.plan.workers and native.module is None:
        raise RuntimeError(
            f"taas: the native module is missing ({native.why_absent}), and without it this rank cannot take "
            "batches from data workers; run with --cpus 0, or install taas with it"
        )
    delivery = FromRun(watched) if watched.plan.workers else LoopForks()
    delivery.on_error = watched.plan.on_error
    delivery.samples_wanted = -(-watched.plan.units // max(1, watched.plan.world_size))
    return delivery


class FromRun(Delivery, Workers):
    """One client for all registered loaders, under the run's budget for a rank."""

    prefetches = True

    def __init__(self, watched: Watched) -> None:
        Workers.__init__(self)
        atexit.register(self.disconnect)
        self._watched = watched
        plan = watched.plan
        self.budget_bytes = plan.buffer_bytes
        self.client = native.module.Client(plan.run, plan.key, plan.encryption, plan.compression, plan.buffer_bytes)
        self._present: list[int] = []
        self._captures = Captures(same_machine=False, are_forks=False)
        self._take(plan)

    def opener(self, registered: Any, loader: DataLoader) -> Opening:
        name = self._named(loader)
        capture = self._captures.capture(registered.token, loader, registered.has_begun)
        meant = definition.named(name) if name else registered.fingerprint.definition(loader, self._are_here())
        for place in capture.unsendable:
            if not place.startswith(("__main__:", ":__main__")) and "<" not in place:  # these come with the code
                what = place.replace(":", ".").lstrip(".")
                events.remark_once(
                    f"{what} has changed, and data workers cannot be sent it: make it an attribute of the dataset"
                )
        state = with_shared(capture.state, values_of(meant.shared))
        shares_memory = registered.fingerprint.shares_memory(loader, with_forks=False)
        return Opening(
            meant.digest + digest_of(state),
            lambda: Bundles(RemoteStream(self, meant, state, bool(name), shares_memory)),
            shares_memory,
        )

    def release(self, token: int) -> None:
        self._captures.forget(token)

    def name_for(self, loader: DataLoader) -> str:
        return self._named(loader).partition(":")[2]

    def count(self) -> int:
        return len(self._present)

    def index_of(self, shard: int) -> int:
        """Shards go to the places of the list, and to the next worker that there is where one has left."""
        place = shard % len(self._watched.plan.workers)
        return place if place in self._present or not self._present else self._present[shard % len(self._present)]

    def name_of(self, index: int) -> str:
        workers = self._watched.plan.workers
        return (
            workers[index].get("name") or f"data worker {index}"
            if 0 <= index < len(workers)
            else f"data worker {index}"
        )

    def tend(self) -> None:
        if not self._watched.is_due():
            return
        for line in self.client.take_remarks():
            events.remark(line)
        if self._watched.has_changed():
            self._take(self._watched.plan)

    def _are_here(self) -> bool:
        """Whether all workers are on this machine."""
        paths = [self._watched.plan.workers[index].get("unix") for index in self._present]
        return all(path and os.path.exists(path) for path in paths)

    def _named(self, loader: DataLoader) -> str:
        """What --loader calls it; empty where it does not."""
        return next((name for name in self._watched.plan.loaders() if is_named(loader, name)), "")

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
