"""The state of this process that a loop over a loader is to leave as the plain loader leaves it."""

import os
import random
import signal
import sys
import warnings
from typing import Any

import numpy
import torch

from .looks import digest


def seed(value: int = 11) -> None:
    torch.manual_seed(value)
    random.seed(value)
    numpy.random.seed(value)


def random_states() -> tuple[str, str, str]:
    """Of torch's, Python's and numpy's generators."""
    numpy_state = numpy.random.get_state()
    return (
        digest(torch.get_rng_state().numpy().tobytes()),
        digest(repr(random.getstate()).encode()),
        digest(numpy_state[1].tobytes() + bytes(str(numpy_state[2:]), "ascii")),
    )


def settings() -> dict[str, Any]:
    """What a program sets for all of itself."""
    variables = {f"${name}": value for name, value in os.environ.items() if not name.startswith(("TAAS_", "TMPDIR"))}
    return {
        **variables,
        "folder": os.getcwd(),
        "arguments": sys.argv,
        "path": sys.path,
        "default dtype": str(torch.get_default_dtype()),
        "threads of torch": torch.get_num_threads(),
        "sharing": torch.multiprocessing.get_sharing_strategy(),
        "recursion limit": sys.getrecursionlimit(),
        "warning filters": len(warnings.filters),
        "signal handlers": [
            str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
        ],
        "numpy errors": numpy.geterr(),
    }
