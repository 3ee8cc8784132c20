"""JAX over the ranks of a run."""

from __future__ import annotations

import os
from typing import Any

from .runtime.rendezvous import Store, endpoint, hold_port

_KEY = "taas/jax/coordinator"


def jax_initialize(**options: Any) -> None:
    """Calls `jax.distributed.initialize` with what this rank is: before any other use of JAX, in all ranks.

    Each rank drives one device, that of its LOCAL_RANK, or all of its own under --devices-per-rank. JAX's coordinator
    runs in rank 0, on a free port; JAX_COORDINATOR_ADDRESS names another place. `options` are those of
    `jax.distributed.initialize` and win. In a program that runs alone nothing happens. Raises NoStore below a launcher
    that serves no store.
    """
    world_size = int(os.environ.get("WORLD_SIZE") or 1)
    if world_size == 1:
        return
    who = {
        "num_processes": world_size,
        "process_id": int(os.environ["RANK"]),
        "local_device_ids": _devices(),
        **options,
    }
    if "coordinator_address" in who or os.environ.get("JAX_COORDINATOR_ADDRESS"):
        return _initialize(who)
    with Store() as store:
        if who["process_id"] == 0:
            _initialize_first(store, who)
        else:
            _initialize({"coordinator_address": store.get(_KEY), **who})
        store.join(who["process_id"])


def _devices() -> list[int]:
    each = int(os.environ.get("TAAS_DEVICES_PER_RANK") or 1)
    return list(range(each)) if each > 1 else [int(os.environ["LOCAL_RANK"])]


def _initialize_first(store: Store, who: dict[str, Any]) -> None:
    """The coordinator is in this process, on a port that is held until it has it."""
    with hold_port(store.own_address) as held:
        port = held.getsockname()[1]
        store.set(_KEY, endpoint(os.environ["MASTER_ADDR"], port))
        own = endpoint(store.own_address, port)
        _initialize({"coordinator_address": own, "coordinator_bind_address": own, **who})


def _initialize(options: dict[str, Any]) -> None:
    import jax

    jax.distributed.initialize(**options)
