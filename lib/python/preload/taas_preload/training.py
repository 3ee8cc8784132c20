"""Whether this rank's training is watched for mistakes, and where the agent finds what was noticed."""

import atexit
import os

from . import torch_watch
from .stash import Stash
from .training_facts import TrainingFacts

SWITCH = "TAAS_HINTS"
_PLACE = (
    "_taas_training_facts"  # in torch, for what the package `taas` notices: of this one no module is left in a rank
)
_SUFFIX = ".facts"  # as in lib/node/process/rank_process.cpp


def watch(stash: Stash) -> None:
    """In the preloaded interpreter."""

    def begin() -> None:
        beside = os.environ.get("TORCHELASTIC_ERROR_FILE")
        alone = os.environ.get("WORLD_SIZE", "1") == "1"  # a single rank can make none of these mistakes
        if not beside or alone or os.environ.get(SWITCH) == "0":
            return
        facts = TrainingFacts()
        setattr(stash.find("torch"), _PLACE, facts)
        torch_watch.watch(facts)
        atexit.register(facts.write, beside + _SUFFIX)

    if stash.find("torch") is not None:
        stash.then("torch", begin)
