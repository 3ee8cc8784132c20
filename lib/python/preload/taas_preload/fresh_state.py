"""What a fresh interpreter draws at random or takes from its own process when modules are imported: every rank anew."""

import os

from typing import Any

from . import draws
from .stash import Stash


def renew(stash: Stash) -> None:
    draws.renew()
    _numpy(stash.find("numpy.random"))
    _torch(stash.find("torch"))
    _multiprocessing(stash.find("multiprocessing.process"), stash.find("multiprocessing.util"))
    _threading(stash.find("threading"))
    _tempfile(stash.find("tempfile"))


def _numpy(random: Any) -> None:
    """Python's own `random` does this by itself."""
    if random is not None:
        random.seed()


def _torch(torch: Any) -> None:
    generator = getattr(torch, "default_generator", None)
    if generator is not None:
        generator.seed()


def _multiprocessing(process: Any, util: Any) -> None:
    if process is not None:
        process.current_process().authkey = os.urandom(32)
    if util is not None:
        for finalizer in util._finalizer_registry.values():
            finalizer._pid = os.getpid()  # else it would take this process for a child of the one that made it


def _threading(threading: Any) -> None:
    if threading is not None:
        threading.main_thread()._set_native_id()


def _tempfile(tempfile: Any) -> None:
    """TMPDIR may be another one when the program asks."""
    if tempfile is not None:
        tempfile.tempdir = None
