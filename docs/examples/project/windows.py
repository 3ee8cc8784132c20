"""Cuts examples into windows that fit the model, and marks where the answer lies in each of them.

A window is [CLS] question [SEP] words of the document. Position 0 stands for "the answer is not here".
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from examples import ANSWER_TYPES, Answer, Example

PADDING, CLS, SEP, FIRST_WORD = range(4)  # numbers of tokens
NOTHING, QUESTION, DOCUMENT, SHARED = range(4)  # kinds of tokens; a shared one is in the document and the question
KINDS = 4
IGNORED = -100  # a target that the loss leaves out

Window = dict[str, Any]  # arrays and numbers of numpy


@dataclass(frozen=True)
class WindowShape:
    length: int  # tokens of a window
    stride: int  # words from the beginning of one window to that of the next
    question: int  # words of a question; what is longer is cut
    buckets: int  # different tokens

    def room(self, example: Example) -> int:
        """Words of the document in one window."""
        return self.length - self.prefix(example)

    def prefix(self, example: Example) -> int:
        return min(len(example.question), self.question) + 2


def token_of(word: str, buckets: int) -> int:
    """The same in every process and at every time, which hash() is not."""
    return FIRST_WORD + zlib.crc32(word.lower().encode()) % (buckets - FIRST_WORD)


def window_starts(example: Example, shape: WindowShape) -> Iterator[int]:
    """The first word of each window; the last window reaches the end of the document."""
    last = max(0, len(example.document) - shape.room(example))
    yield from range(0, last + shape.stride, shape.stride) if last else (0,)


def accepted(example: Example) -> tuple[Answer, ...]:
    """The answers that count as right: none, unless two of several annotators have found one."""
    found = tuple(answer for answer in example.answers if answer.type != "none")
    return found if len(found) >= min(2, len(example.answers)) else (Answer(),)


def targets(example: Example, start: int, shape: WindowShape) -> dict[str, int]:
    """What the model is to say about this window: positions in it, and the number of the type."""
    answer, room, origin = accepted(example)[0], shape.room(example), start - shape.prefix(example)
    begins_here = answer.long is not None and start <= answer.long.start < start + room
    long = answer.long.start - origin if answer.long and begins_here else 0
    short = next((span for span in answer.short if start <= span.start and span.end <= start + room), None)
    if short:
        return {
            "type": ANSWER_TYPES.index("short"),
            "start": short.start - origin,
            "end": short.end - 1 - origin,
            "long": long or IGNORED,
        }
    kind = "none" if not begins_here else "long" if answer.short else answer.type
    return {"type": ANSWER_TYPES.index(kind), "start": 0, "end": 0, "long": long}


def encode(example: Example, start: int, shape: WindowShape) -> Window:
    """The window of `example` that begins with the word `start`, as arrays."""
    question, words = example.question[: shape.question], example.document[start : start + shape.room(example)]
    prefix, asked = shape.prefix(example), {word.lower() for word in question}
    tokens, kinds = np.zeros(shape.length, np.int64), np.full(shape.length, NOTHING)
    tokens[:prefix] = [CLS, *(token_of(word, shape.buckets) for word in question), SEP]
    tokens[prefix : prefix + len(words)] = [token_of(word, shape.buckets) for word in words]
    kinds[:prefix] = QUESTION
    kinds[prefix : prefix + len(words)] = [SHARED if word.lower() in asked else DOCUMENT for word in words]
    candidates = np.zeros(shape.length, bool)
    beginnings = {each.start - start for each in example.candidates}
    candidates[[prefix + place for place in beginnings if 0 <= place < len(words)]] = True
    numbers = {name: np.int64(value) for name, value in targets(example, start, shape).items()}
    return {"tokens": tokens, "kinds": kinds, "candidates": candidates, "origin": np.int64(start - prefix), **numbers}


class Windows:
    """A map-style dataset: item i is the window of example `rows[i, 0]` that begins with word `rows[i, 1]`."""

    def __init__(self, examples: Sequence[Example], rows: np.ndarray, shape: WindowShape) -> None:
        self.examples, self.rows, self.shape = examples, rows, shape

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Window:
        example, start = map(int, self.rows[index])
        return {**encode(self.examples[example], start, self.shape), "example": np.int64(example)}
