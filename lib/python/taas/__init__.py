"""Data delivery: `taas.register(loader)` lets data workers make a DataLoader's batches, in the sampler's order.

    loader = DataLoader(dataset, batch_size=64, shuffle=True)
    taas.register(loader)
    for batch in loader: ...

Below `taas-run --cpus N` the workers run on N CPU machines, otherwise on this one. docs/data.md says what is guaranteed.
"""

from .errors import UndeliverableBatch
from .registration import RegistrationError, is_registered, register, unregister
from .worker_info import WorkerInfo, get_worker_info

unregistered = unregister
"""The name that unregister once had."""

__all__ = ["RegistrationError", "UndeliverableBatch", "WorkerInfo", "get_worker_info", "is_registered", "register", "unregister",
           "unregistered"]
