"""Batches in page-locked memory, from which an accelerator copies without waiting."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils.data._utils.pin_memory import pin_memory


@functools.lru_cache(maxsize=None)
def _accelerator() -> str | None:
    """The kind of accelerator that this machine has; None without one, and for one that has no pinned memory."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return found.type if found is not None and found.type != "mps" else None


def pinned(batch: Any) -> Any:
    """The batch as the plain loader gives it with pin_memory=True: as it is on a machine without an accelerator."""
    accelerator = _accelerator()
    return pin_memory(batch, accelerator) if accelerator else batch
