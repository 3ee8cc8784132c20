"""Data delivery: `taas.register(loader)` lets data workers make a DataLoader's batches, in the sampler's order.

    loader = DataLoader(dataset, batch_size=64, shuffle=True)
    taas.register(loader)
    for batch in loader: ...

With `taas.register(loader, device="cuda")` its batches arrive on the GPU. Data workers are those of `taas-run
--cpus N`; without them the loader is the DataLoader that it was. docs/data.md says what is guaranteed.
"""

from __future__ import annotations

from .foreign import refuse_foreign_files

refuse_foreign_files(__path__[0])  # before anything else: another distribution may have replaced any module

import importlib
from typing import TYPE_CHECKING, Any

from ._version import version as __version__  # noqa: F401

if TYPE_CHECKING:
    from .order.task import UndeliverableBatch
    from .jax_ranks import jax_initialize
    from .registration import RegistrationError, is_registered, register, unregister
    from .worker.worker_info import WorkerInfo, get_worker_info

__all__ = [
    "RegistrationError",
    "UndeliverableBatch",
    "WorkerInfo",
    "get_worker_info",
    "is_registered",
    "jax_initialize",
    "register",
    "unregister",
]

# Imported when they are first used: they need torch, which takes a second, and which not every environment has.
_HOMES = {
    "RegistrationError": "registration",
    "UndeliverableBatch": "order.task",
    "WorkerInfo": "worker.worker_info",
    "get_worker_info": "worker.worker_info",
    "is_registered": "registration",
    "jax_initialize": "jax_ranks",
    "register": "registration",
    "unregister": "registration",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    globals()[name] = value
    return value


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext taas`: cells that begin with `#!g2.8` or `#pragma taas` run on many GPUs (docs/notebooks.md)."""
    from .notebook import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext taas`: they are ordinary cells again."""
    from .notebook import unload

    unload(ipython)
