"""Exceptions of a dataset, raised again in the training loop."""

from __future__ import annotations

import contextlib
import os
from typing import Any, NoReturn

from ..batch.outcome import Failed
from ..order.task import Task
from ..sending import by_value


class DataWorkerTraceback(Exception):
    """The cause of an exception that a data worker sent: its text is the traceback there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text

    def __str__(self) -> str:
        return "\n" + self._text.rstrip()


class UndeliverableBatch(RuntimeError):
    """No data worker can make a batch."""


def unpickled(type_name: str, text: str, pickled: bytes) -> BaseException:
    """The exception that a worker sent; a RuntimeError that names it where it cannot be made again here."""
    try:
        error = by_value.load(pickled)
        if isinstance(error, BaseException):
            return error
    except Exception:
        pass
    return RuntimeError(_said(type_name, text))


def _said(type_name: str, text: str) -> str:
    """The line of a traceback's text in which the exception says what it is; notes come behind it."""
    lines = text.strip().splitlines() or [type_name]
    own = [line for line in lines if line.partition(":")[0].rpartition(".")[2] == type_name]
    return own[-1] if own else f"{type_name}: {lines[-1]}"


def describe(task: Task) -> str:
    """Which batch it is, for people."""
    place = f"batch {task.number} of epoch {task.seeds.epoch}"
    return f"{place}, indices {short(task.indices)}" if task.turn < 0 else place


def short(indices: Any) -> str:
    """In one line."""
    text = " ".join(repr(indices).split())
    return text if len(text) <= 80 else text[:76] + " …]"


def say(line: str) -> None:
    """On stderr, whatever the program's code has made of sys.stderr: the launcher shows a data worker's last line."""
    with contextlib.suppress(OSError):
        os.write(2, f"taas: {line}\n".encode(errors="backslashreplace"))


def raise_again(failed: Failed, task: Task) -> NoReturn:
    """Raises the dataset's own exception, with the traceback of where it happened as its cause."""
    error = failed.error
    if hasattr(error, "add_note"):
        error.add_note(f"taas: raised in {failed.where} while it made {describe(task)}")
    raise error from DataWorkerTraceback(failed.text)
