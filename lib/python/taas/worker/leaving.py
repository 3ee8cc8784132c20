"""How a data worker ends that is told to.

It finishes what it is at, and what is to be done at a process' end, as torch's own do.
"""

from __future__ import annotations

import os
import sys
import threading
from multiprocessing import util
from typing import Any

_FINISHING_SECONDS = 2.0


def leave_when_told(leaving: int, worker: Any) -> None:
    """`leaving` is an eventfd. Returns at once."""
    threading.Thread(target=_leave, args=(leaving, worker), name="taas-leaving", daemon=True).start()


def _leave(leaving: int, worker: Any) -> None:
    os.eventfd_read(leaving)
    try:
        worker.finish_all(_FINISHING_SECONDS)
        getattr(util, "_exit_function")()  # not in the stubs
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)
