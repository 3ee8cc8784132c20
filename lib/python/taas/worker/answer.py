"""What came of a task: a batch as it goes to the rank, or what goes there instead of it."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from ..order.task import Task
from ..sending import by_value
from .errors import UndeliverableBatch, describe, say
from .making import Copy

_MOST_BYTES = 62 << 20
_MOST_TEXT = 1 << 20


class Made(NamedTuple):
    """The batch, as batches.encode has it; of a stream with its facts."""

    buffers: list[Any]


class Raised(NamedTuple):
    """The dataset's code raised. `pickled` is the exception, or nothing where it cannot be pickled."""

    type: str
    text: str
    pickled: bytes


class NoMemory(NamedTuple):
    """There was too little memory for it here."""

    why: str


Answer = Made | Raised | NoMemory


def answer_to(task: Task, copy: Copy, stream: int = 0, is_suspect: bool = False) -> Answer:
    """Makes the batch. Raises nothing. Where it `is_suspect`, what is made next is said on stderr."""
    copy.names_indices = is_suspect
    if is_suspect:
        say(describe(task))
    try:
        return Made(copy.encoded(task, stream))
    except MemoryError as error:
        return NoMemory(str(error) or "MemoryError")
    except BaseException as error:
        return raised(error, copy.failed_index)
    finally:
        if is_suspect:
            say(f"{describe(task)}: no data worker ended this time")


def raised(error: BaseException, index: Any = None) -> Raised:
    """`index` is the one whose sample raised, where that is known."""
    if index is not None and hasattr(error, "add_note"):
        error.add_note(f"index {index!r} of the dataset")
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    pickled = _pickled(error)
    if len(pickled) > _MOST_BYTES:
        return raised(
            UndeliverableBatch(
                f"taas: the dataset raised a {type(error).__name__} of {len(pickled) / 1e6:.0f} MB, of which a "
                f"data worker can send {_MOST_BYTES / 1e6:.0f} MB"
            )
        )
    return Raised(type(error).__name__, text[-_MOST_TEXT:], pickled)


def _pickled(error: BaseException) -> bytes:
    try:
        data = by_value.dumps(error, by_value.ByName)
        by_value.load(data)
        return data
    except Exception:
        return b""
