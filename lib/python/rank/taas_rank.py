"""In each process of a rank that imports torch: a default group that is made again has keys of its own.

torch calls `watch` at the end of its own import, because the folder beside this file names it in "torch.backends",
torch's own list of extensions, and taas-run puts the folder of both at the end of PYTHONPATH. docs/frameworks.md says
what it is good for.

torch counts groups from 0 again after destroy_process_group(), so that the next default group looks at the keys of the
one before, where ranks that are slower still have their old addresses. Here the store itself keeps how many groups of
so many ranks each rank has joined, and every group after the first has a prefix with that number. What a process
counted alone would start anew in a program that runs others one after another, and an attempt that failed does not
count. The first group of all ranks has torch's own keys: taas-run reads them, and programs without torch's Python can
be in it.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

_PLACE = "taas/groups"  # "<place>/<ranks>/joined/<rank>" is a number, "<place>/<ranks>/<number>" a prefix

_attempt: tuple[Any, str] | None = None  # the store where the group that is being made is counted, and the key
_first_store: Any = None  # of rank 0 where it serves the store itself: it ends with the last client in this process


def watch() -> None:
    """Where torch has no functions of these names, groups are as torch makes them."""
    groups = sys.modules.get("torch.distributed.distributed_c10d")
    rendezvous, update = getattr(groups, "rendezvous", None), getattr(groups, "_update_default_pg", None)
    if groups is None or rendezvous is None or update is None:
        return

    @functools.wraps(rendezvous)
    def meet(*arguments: Any, **named: Any) -> Any:
        return map(_with_own_keys, rendezvous(*arguments, **named))  # no frame of this file where torch waits or fails

    @functools.wraps(update)
    def change(group: Any) -> None:
        update(group)
        if group is not None:
            _count()

    groups.rendezvous, groups._update_default_pg = meet, change  # type: ignore[attr-defined]


def _with_own_keys(met: Any) -> Any:
    """`met` is a store, this rank and the number of ranks."""
    global _attempt
    _attempt = None
    try:
        store, rank, ranks = met
        if not _is_of_the_run(store):
            return met
        _keep(store, rank, ranks)
        key = f"{_PLACE}/{ranks}/joined/{rank}"
        before = store.add(key, 0)
        _attempt = store, key
        if before == 0 and str(ranks) == os.environ.get("WORLD_SIZE"):
            return met
        return _prefixed(store, f"{_PLACE}/{ranks}/{before}"), rank, ranks
    except Exception:
        return met  # torch's own way


def _is_of_the_run(store: Any) -> bool:
    """The only one that holds the keys of earlier groups: at MASTER_PORT, whoever serves it."""
    return type(store).__name__ == "TCPStore" and str(store.port) == os.environ.get("MASTER_PORT")


def _keep(store: Any, rank: int, ranks: int) -> None:
    """A later group of rank 0 takes the same server again, so that no other rank connects to one that soon ends."""
    global _first_store
    if _first_store is None and rank == 0 and ranks > 1 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        _first_store = store


def _prefixed(store: Any, prefix: str) -> Any:
    return sys.modules["torch.distributed"].PrefixStore(prefix, store)


def _count() -> None:
    global _attempt
    if _attempt is None:
        return  # a store of the program's own
    (store, key), _attempt = _attempt, None
    try:
        store.add(key, 1)
    except Exception:
        return
