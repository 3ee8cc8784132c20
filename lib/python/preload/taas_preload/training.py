"""Whether this rank's training is watched for mistakes, and where the agent finds what was noticed."""

import atexit
import os
import sys

from . import torch_watch
from .training_facts import TrainingFacts

SWITCH = "TAAS_HINTS"
current: TrainingFacts | None = None
"""Of this rank, for what the package `taas` notices. None where nothing is watched."""
_SUFFIX = ".facts"  # as in lib/node/process/rank_process.cpp


def watch() -> None:
    """In a rank, when its environment is there. A single rank can make none of these mistakes."""
    global current
    beside = os.environ.get("TORCHELASTIC_ERROR_FILE")
    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    if "torch" not in sys.modules or not beside or alone or os.environ.get(SWITCH) == "0":
        return
    facts = current = TrainingFacts()
    torch_watch.watch(facts)
    atexit.register(facts.write, beside + _SUFFIX)
