"""A batch that a data worker was lost over: made in a fork, so that the index at which that ends is known."""

from __future__ import annotations

import mmap
import os
import signal
import struct
from typing import Any, Callable

from ..code.recipe import Recipe
from ..order.task import Task
from . import processes
from .answer import Answer, NoMemory, raised
from .errors import UndeliverableBatch
from .logical_process import Ended, LogicalProcess

_PLACE = struct.Struct("<q")


def answer_to(task: Task, recipe: Recipe, stream: Any, in_child: Callable[[], None]) -> Answer:
    """What comes of `task`; an error that names the index where the process dies of it.

    One that was killed from outside may have had too little memory: another data worker is to try.
    """
    begun = mmap.mmap(-1, _PLACE.size)
    begun[:] = _PLACE.pack(-1)
    process = LogicalProcess(recipe, in_child, lambda place: _PLACE.pack_into(begun, 0, place))
    try:
        return process.answer(task.to_bytes(), stream)
    except Ended as ended:
        where = _index_at(task, _PLACE.unpack(begun)[0])
        if os.WIFSIGNALED(ended.status) and os.WTERMSIG(ended.status) == signal.SIGKILL:
            return NoMemory(f"{where} {processes.described(ended.status)}")
        return raised(
            UndeliverableBatch(f"taas: {where} {processes.described(ended.status)}, and a data worker before")
        )
    finally:
        process.end()
        process.has_ended()


def _index_at(task: Task, place: int) -> str:
    """`place` is that in the batch, or -1."""
    if place < 0:
        return "the process that made it"
    index = task.indices[place] if isinstance(task.indices, (list, tuple)) else task.indices
    return f"the process that made index {index!r} of the dataset"
