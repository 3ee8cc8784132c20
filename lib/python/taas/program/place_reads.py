"""Whether a dataset has asked for its rank: what was made before there are ranks is then of no use."""

from __future__ import annotations

import os
from typing import Any

import torch.distributed

from .place import VARIABLES


class PlaceReads:
    """`seen` is True once a variable of the rank's place was looked at, or torch.distributed was asked."""

    seen = False


class _Noticing(os._Environ):
    def __getitem__(self, name: str) -> str:
        if name in VARIABLES:
            PlaceReads.seen = True
        return super().__getitem__(name)


def notice_place() -> None:
    """In a data worker that prepares, before it imports the loader."""
    os.environ.__class__ = _Noticing
    if torch.distributed.is_available():
        for name in ("is_initialized", "get_rank", "get_world_size"):
            _notice(torch.distributed, name)


def _notice(module: Any, name: str) -> None:
    plain = getattr(module, name)

    def noticed(*arguments: Any, **named: Any) -> Any:
        PlaceReads.seen = True
        return plain(*arguments, **named)

    setattr(module, name, noticed)
