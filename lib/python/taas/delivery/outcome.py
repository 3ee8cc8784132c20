"""What becomes of a task: a batch, or an exception of the dataset, which is raised again in the training loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ..order.task import Facts, Task
from ..sending import by_value


@dataclass
class Ready:
    """A batch.

    `size` is its payload's bytes, `digest` 64 bits over them; of a stream with its facts, and without a batch at the
    end of a shard.
    """

    batch: Any
    size: int
    digest: int
    facts: Facts | None = None


@dataclass
class Failed:
    """The dataset, or collate_fn, raised `error`, or what makes the batch's objects again.

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


class DataWorkerTraceback(Exception):
    """The cause of an exception that a data worker sent: its text is the traceback there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text

    def __str__(self) -> str:
        return "\n" + self._text.rstrip()


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


def raise_again(failed: Failed, task: Task) -> NoReturn:
    """Raises the dataset's own exception, with the traceback of where it happened as its cause."""
    error = failed.error
    if hasattr(error, "add_note"):
        error.add_note(f"taas: raised in {failed.where} while it made {task}")
    raise error from DataWorkerTraceback(failed.text)
