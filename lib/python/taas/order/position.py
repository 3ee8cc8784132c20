"""Going back to the start of an epoch, so that its index batches are drawn again, and leaving no trace of that."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch
from torch.utils.data import DataLoader

from . import random_states


def start_of(loader: DataLoader) -> dict[str, Any]:
    """What an epoch's order depends on, as it is now: plain tensors, numbers and tuples, for torch.save."""
    sampler = loader.sampler
    return {
        "random": _portable(random_states.capture()),
        "generators": [generator.get_state() for generator in _generators_of(loader)],
        "sampler_epoch": getattr(sampler, "epoch", None),
        "sampler": sampler.state_dict() if hasattr(sampler, "state_dict") else None,
    }


@contextlib.contextmanager
def as_at_the_start(loader: DataLoader, resume: dict[str, Any] | None) -> Iterator[None]:
    """Inside, random states are as when the saved epoch began; afterwards the process' own are as they were.

    The loader's own generators stay as the draws have left them: so they were when the state was saved.
    """
    if resume is None:
        yield
        return
    start = resume["start"]
    with random_states.kept():
        random_states.restore(_from_portable(start["random"]))
        for generator, state in zip(_generators_of(loader), start["generators"]):
            generator.set_state(state)
        if start["sampler_epoch"] is not None and hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(start["sampler_epoch"])
        if start["sampler"] is not None:
            sampler: Any = loader.sampler
            sampler.load_state_dict(start["sampler"])
        yield


def note_first_draw(start: dict[str, Any]) -> None:
    """The order is drawn now, later than the epoch has begun."""
    start["first_draw"] = _portable(random_states.capture())


def return_to_first_draw(start: dict[str, Any]) -> None:
    """Inside as_at_the_start: random states are as they were then, where that was noted."""
    if "first_draw" in start:
        random_states.restore(_from_portable(start["first_draw"]))


def _generators_of(loader: DataLoader) -> list[torch.Generator]:
    """Each generator that the loader or its samplers draw from, once; never torch's default one."""
    batch_sampler = loader.batch_sampler
    owners = (loader, loader.sampler, batch_sampler, getattr(batch_sampler, "sampler", None))
    found = [getattr(owner, "generator", None) for owner in owners]
    generators = [one for one in found if isinstance(one, torch.Generator) and one is not torch.default_generator]
    return list({id(generator): generator for generator in generators}.values())


def _portable(states: random_states.RandomStates) -> list[Any]:
    """Without numpy arrays: torch.load takes no others than tensors from a checkpoint."""
    numpy = states.numpy and [states.numpy[0], states.numpy[1].tolist(), *states.numpy[2:]]
    return [states.torch, states.random, numpy]


def _from_portable(states: list[Any]) -> random_states.RandomStates:
    version, words, gauss = states[1]
    return random_states.RandomStates(states[0], (version, tuple(words), gauss), states[2] and tuple(states[2]))
