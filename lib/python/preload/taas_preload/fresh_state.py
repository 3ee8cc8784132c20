"""What a fresh interpreter draws at random or takes from its own process when modules are imported: every rank anew."""

import os
import sys

from . import draws


def renew() -> None:
    draws.renew()
    _numpy()
    _torch()
    _multiprocessing()
    _threading()


def _numpy() -> None:
    """Python's own `random` does this by itself."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


def _torch() -> None:
    generator = getattr(sys.modules.get("torch"), "default_generator", None)
    if generator is not None:
        generator.seed()


def _multiprocessing() -> None:
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        for finalizer in util._finalizer_registry.values():
            finalizer._pid = os.getpid()  # else it would take this process for a child of the one that made it


def _threading() -> None:
    threading = sys.modules.get("threading")
    if threading is not None:
        threading.main_thread()._set_native_id()
