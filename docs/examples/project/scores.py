"""Reads answers out of the model's outputs, and compares them with the annotators'. For torch and for TensorFlow."""

from collections.abc import Sequence

import numpy as np

from examples import ANSWER_TYPES, Answer, Example, Span
from windows import accepted

LONGEST_SHORT = 30  # words
MEASURES = ("exact match", "F1", "long answer")

Arrays = dict[str, np.ndarray]


def predict(outputs: Arrays, origin: int, example: Example) -> Answer:
    """The answer in one window, whose position 0 is the word `origin` of the document."""
    kind = ANSWER_TYPES[outputs["type"].argmax()]
    if kind == "none":
        return Answer()
    place = 1 + int(outputs["long"][1:].argmax()) + origin
    long = next((each for each in example.candidates if each.start == place), None)
    if kind != "short":
        return Answer(kind, long)
    short = best_span(outputs["start"], outputs["end"], origin)
    around = [each for each in example.candidates if each.start <= short.start and short.end <= each.end]
    if long not in around:  # the short answer lies in the long one
        long = min(around, key=lambda each: each.end - each.start, default=None)
    return Answer(kind, long, (short,))


def best_span(start: np.ndarray, end: np.ndarray, origin: int) -> Span:
    """The most likely pair of a first and a last word, which come in this order and not too far apart."""
    both = start[1:, None].astype(float) + end[None, 1:]
    first, last = np.indices(both.shape)
    both[(last < first) | (last >= first + LONGEST_SHORT)] = -np.inf
    first, last = np.unravel_index(both.argmax(), both.shape)
    return Span(int(first) + 1 + origin, int(last) + 2 + origin)


class BestWindows:
    """Of each example the window that is surest of having an answer."""

    def __init__(self) -> None:
        self.best: dict[int, tuple[float, Arrays, int]] = {}

    def add(self, outputs: Arrays, batch: Arrays) -> None:
        for row, example in enumerate(batch["example"].tolist()):
            window = {name: values[row] for name, values in outputs.items()}
            doubt = window["type"][0] - window["type"][1:].max()
            if example not in self.best or doubt < self.best[example][0]:
                self.best[example] = (doubt, window, int(batch["origin"][row]))

    def sums(self, examples: Sequence[Example]) -> np.ndarray:
        """How many examples there were, and for each of MEASURES the sum over them."""
        total = np.zeros(1 + len(MEASURES))
        for number, (_, window, origin) in self.best.items():
            example = examples[number]
            total += (1, *measures(predict(window, origin, example), accepted(example)))
        return total


def measures(predicted: Answer, right: tuple[Answer, ...]) -> tuple[float, float, float]:
    """Of the short answer and of the long one; no answer is right where the annotators have found none."""
    overlap = max(short_f1(predicted, answer) for answer in right)
    return float(overlap == 1), overlap, float(any(predicted.long == answer.long for answer in right))


def short_f1(predicted: Answer, right: Answer) -> float:
    """1 for the same words, or the same yes or no, or none on both sides; the overlap in words between."""
    if not predicted.short or not right.short:
        return float(bool(predicted.short) == bool(right.short) and yes_no(predicted) == yes_no(right))
    return max(span_f1(predicted.short[0], span) for span in right.short)


def yes_no(answer: Answer) -> str | None:
    return answer.type if answer.type in ("yes", "no") else None


def span_f1(one: Span, other: Span) -> float:
    common = max(0, min(one.end, other.end) - max(one.start, other.start))
    return 2 * common / (one.end - one.start + other.end - other.start)
