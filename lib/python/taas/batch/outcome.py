"""What becomes of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..order.task import Facts


@dataclass
class Ready:
    """A batch.

    `size` is its payload's bytes, `digest` 64 bits over them, `description` what tree.encode said; of a stream with its
    facts, and without a batch at the end of a shard.
    """

    batch: Any
    size: int
    digest: int
    description: str
    facts: Facts | None = None


@dataclass
class Failed:
    """The dataset, or collate_fn, raised `error`.

    `text` is the traceback from where it was raised; `where` names the maker.
    """

    error: BaseException
    text: str
    where: str


@dataclass
class Refused:
    """No data worker can make the batch."""

    message: str


Outcome = Ready | Failed | Refused
