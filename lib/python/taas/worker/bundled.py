"""The answers to several tasks that were asked for at once, as one answer."""

from __future__ import annotations

import base64
import json
import time
from typing import Any, Callable, Iterator, Sequence

from ..batch import layout
from ..order import task
from ..order.bundle import tasks_in
from ..order.task import Task
from .answer import Answer, Made, NoMemory, Over, Raised, answer_to
from .fetch import Fetcher

_BEGINNING = '{"bundle"'


def answer_all(payload: bytes, fetcher: Fetcher, stream: Any) -> Answer:
    """What comes of the tasks in `payload`. Raises nothing."""
    return answered(payload, lambda wanted: answer_to(wanted, fetcher, stream))


def answered(payload: bytes, answer: Callable[[Task], Answer]) -> Answer:
    """The same, each task being answered by `answer`."""
    payloads = tasks_in(payload)
    if len(payloads) == 1:
        return answer(task.from_bytes(payload))
    start = time.perf_counter()
    return _joined([answer(task.from_bytes(each)) for each in payloads], time.perf_counter() - start)


def _joined(answers: Sequence[Answer], seconds: float) -> Answer:
    """Where there was too little memory for one, there is for none: somebody else is to make them all."""
    descriptions: dict[str, int] = {}
    entries: list[Any] = []
    buffers: list[Any] = []
    end = 0
    for each in answers:
        if isinstance(each, NoMemory):
            return each
        if isinstance(each, Made):
            spans = layout.spans_of(each.buffers)
            size = spans[-1][1] if spans else 0
            entries.append([descriptions.setdefault(each.description, len(descriptions)), layout.aligned(end), size])
            buffers += each.buffers
            end = layout.aligned(end) + size
        elif isinstance(each, Over):
            entries.append([])
        else:
            entries.append([each.type, each.text, base64.b64encode(each.pickled).decode()])
    return Made(
        json.dumps({"bundle": entries, "descriptions": list(descriptions), "seconds": seconds}, separators=(",", ":")),
        buffers,
    )


def is_bundle(description: str) -> bool:
    """Whether a batch's description is that of several answers."""
    return description.startswith(_BEGINNING)


class Unbundled:
    """In the rank: the answers again. `seconds` is how long they took to make."""

    def __init__(self, description: str, payload: Any) -> None:
        head = json.loads(description)
        self.seconds: float = head["seconds"]
        self._entries = head["bundle"]
        self._descriptions = head["descriptions"]
        self._payload = payload

    def __iter__(self) -> Iterator[tuple[str, Any] | Over | Raised]:
        """A batch is its description and its payload, a part of the payload of all."""
        for entry in self._entries:
            if not entry:
                yield Over()
            elif isinstance(entry[0], str):
                yield Raised(entry[0], entry[1], base64.b64decode(entry[2]))
            else:
                number, start, size = entry
                yield self._descriptions[number], self._payload[start : start + size]
