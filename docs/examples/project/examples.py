"""A question with its document: the format that every dataset of this project is brought into."""

import json
from dataclasses import dataclass
from typing import Any

ANSWER_TYPES = ("none", "long", "short", "yes", "no")


@dataclass(frozen=True)
class Span:
    """Words of a document, from `start` up to but not including `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class Answer:
    """What an annotator says: `short` lies within `long`; yes and no have no words of their own."""

    type: str = "none"
    long: Span | None = None
    short: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Example:
    question: tuple[str, ...]
    document: tuple[str, ...]
    candidates: tuple[Span, ...]  # paragraphs, tables and lists that may be the long answer
    answers: tuple[Answer, ...]  # one by each annotator


class BadExample(ValueError):
    """A line that is not an example; the message says why."""


def parse(line: str | bytes) -> Example:
    """One line of the simplified format of Natural Questions. Raises BadExample."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadExample(f"not valid JSON: {error.msg.removesuffix(' at')} at column {error.colno}") from None
    except UnicodeDecodeError:
        raise BadExample("not valid UTF-8") from None
    if not isinstance(record, dict):
        raise BadExample("not a JSON object")
    document = tuple(_field(record, "document_text", str).split(" "))
    candidates = tuple(_span(each, len(document)) for each in _field(record, "long_answer_candidates", list))
    annotations = _field(record, "annotations", list)
    if not annotations:
        raise BadExample("annotations is empty: there is nothing to learn from")
    answers = tuple(_answer(each, candidates, len(document)) for each in annotations)
    return Example(tuple(_field(record, "question_text", str).split()), document, candidates, answers)


def _answer(annotation: Any, candidates: tuple[Span, ...], words: int) -> Answer:
    place = _field(annotation, "long_answer", dict)
    long = None if place.get("start_token") == -1 else _span(place, words)
    short = tuple(
        sorted((_span(each, words) for each in _field(annotation, "short_answers", list)), key=lambda span: span.start)
    )
    yes_no = _field(annotation, "yes_no_answer", str).lower()
    if yes_no not in ("none", "yes", "no"):
        raise BadExample(f'yes_no_answer is "{yes_no.upper()}": neither YES, NO nor NONE')
    if long is None:
        return Answer()
    if long not in candidates:
        raise BadExample(f"the long answer, tokens {long.start} to {long.end}, is not one of long_answer_candidates")
    if yes_no != "none":
        return Answer(yes_no, long)
    return Answer("short" if short else "long", long, short)


def _span(record: Any, words: int) -> Span:
    start, end = _field(record, "start_token", int), _field(record, "end_token", int)
    if not 0 <= start < end <= words:
        raise BadExample(f"tokens {start} to {end} do not lie in a document of {words} tokens")
    return Span(start, end)


def _field(record: Any, name: str, kind: type) -> Any:
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, kind):
        raise BadExample(f"no {name}" if value is None else f"{name} is not of the type {kind.__name__}")
    return value
