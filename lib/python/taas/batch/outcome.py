"""What becomes of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Ready:
    """A batch.

    `size` is its payload's bytes, `digest` 64 bits over them, `description` what tree.encode said; `samples` are
    counted where the task does not say how many there are.
    """

    batch: Any
    size: int
    digest: int
    description: str
    samples: int | None = None


@dataclass
class Failed:
    """The dataset, or collate_fn, raised `error`.

    `text` is the traceback from where it was raised; `where` names the maker.
    """

    error: BaseException
    text: str
    where: str


@dataclass
class Ended:
    """An iterable dataset's shard has ended before this task."""


@dataclass
class Refused:
    """No data worker can make the batch."""

    message: str


Outcome = Ready | Failed | Ended | Refused
