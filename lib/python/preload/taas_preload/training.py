"""Whether this rank's training is watched for mistakes, and where the agent finds what was noticed."""

import atexit
import os
import sys

from . import torch_watch
from .training_facts import TrainingFacts

SWITCH = "TAAS_HINTS"
_PLACE = (
    "_taas_training_facts"  # in torch, for what the package `taas` notices: of this one no module is left in a rank
)
_SUFFIX = ".facts"  # as in lib/node/process/rank_process.cpp


def watch() -> None:
    """In a rank, when its environment is there. A single rank can make none of these mistakes."""
    beside = os.environ.get("TORCHELASTIC_ERROR_FILE")
    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    if "torch" not in sys.modules or not beside or alone or os.environ.get(SWITCH) == "0":
        return
    facts = TrainingFacts()
    setattr(sys.modules["torch"], _PLACE, facts)
    torch_watch.watch(facts)
    atexit.register(facts.write, beside + _SUFFIX)
