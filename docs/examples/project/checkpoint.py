"""Checkpoints: written by rank 0, whole or not at all, read by all ranks."""

import os
import pathlib
import pickle
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist
from torch import nn

OUTPUT = pathlib.Path(os.environ.get("TAAS_OUTPUT_DIR", "output"))
CHECKPOINT = OUTPUT / "checkpoint.pt"


class CheckpointError(Exception):
    """A file to resume from that does not fit; the message names it."""


@dataclass
class Position:
    """How far training has come. Samples are those of all ranks: a run may go on with another number of ranks."""

    epoch: int = 0
    samples: int = 0  # of this epoch


def save(model: nn.Module, optimizer: torch.optim.Optimizer, position: Position) -> None:
    """The file gets its name when it is whole: a process can be killed at any time."""
    if dist.get_rank() == 0:
        OUTPUT.mkdir(parents=True, exist_ok=True)
        unfinished = CHECKPOINT.with_suffix(".part")
        saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "position": asdict(position)}
        torch.save(saved, unfinished)
        unfinished.replace(CHECKPOINT)


def load(model: nn.Module, optimizer: torch.optim.Optimizer, resume: str | None) -> Position:
    """Goes on from what an earlier start of this run has saved, or else from the file `resume`."""
    path = CHECKPOINT if CHECKPOINT.exists() or resume is None else pathlib.Path(resume)
    if not path.exists() and resume is None:
        return Position()
    try:
        saved = torch.load(path, map_location="cpu")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        return Position(**saved["position"])
    except (OSError, RuntimeError, KeyError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path}: not a checkpoint of this model: {str(error).splitlines()[0]}") from None
