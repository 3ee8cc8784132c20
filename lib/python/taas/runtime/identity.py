"""Who this process is in the run, and what the program calls things."""

from __future__ import annotations

import os
import sys
from typing import Any


def rank() -> int:
    """The rank of this process; 0 without a run."""
    return int(os.environ.get("RANK") or 0)


def ranks() -> int:
    """How many ranks there are; 1 without a run."""
    return int(os.environ.get("WORLD_SIZE") or 1)


def speaks_for_all() -> bool:
    """What is the same in all ranks is said by the first one."""
    return rank() == 0


def variable_of(value: Any) -> str | None:
    """The program's own name for `value`: a global variable of its main module."""
    program = getattr(sys.modules.get("__main__"), "__dict__", {})
    return next((name for name, found in list(program.items()) if found is value and not name.startswith("_")), None)
