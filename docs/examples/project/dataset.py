"""The data. Add your own dataset beside DummyDataset, and to open_datasets."""

import argparse
import random
from collections.abc import Sequence

import numpy as np

from examples import Answer, Example, Span
from natural_questions import InputError, open_windows
from windows import Windows, WindowShape, window_starts

SYLLABLES = ("ba", "do", "ki", "lu", "mer", "no", "ran", "sil", "ta", "vo")


class DummyExamples(Sequence[Example]):
    """Documents about made-up books. The same in every process: an example depends on the seed and its number alone."""

    def __init__(self, samples: int, seed: int) -> None:
        self.samples, self.seed = samples, seed

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Example:  # type: ignore[override]
        if not 0 <= index < self.samples:
            raise IndexError(index)
        return make_example(random.Random(f"{self.seed} {index}"))


def make_name(chance: random.Random) -> str:
    return "".join(chance.sample(SYLLABLES, 3))


def make_example(chance: random.Random) -> Example:
    """A few paragraphs, one book each, and a question about a book: who wrote it, where, whether it is to be had."""
    books = sorted({make_name(chance) for _ in range(5)})
    chance.shuffle(books)
    document, paragraphs, available = ["<H1>", "Books", "</H1>"], [], []
    for book in books[1:]:
        available.append(chance.choice((True, False)))
        start = len(document)
        author, town = f"{make_name(chance)} {make_name(chance)}", make_name(chance)
        document += f"<P> {book} was written by {author} in {town} .".split()
        document += f"It is {'open' if available[-1] else 'closed'} to readers . </P>".split()
        paragraphs.append(Span(start, len(document)))
    asked = chance.randrange(len(paragraphs))
    start, book = paragraphs[asked].start, books[1 + asked]
    question, answer = chance.choices(
        [
            (f"who wrote {book}", Answer("short", paragraphs[asked], (Span(start + 5, start + 7),))),
            (f"where was {book} written", Answer("short", paragraphs[asked], (Span(start + 8, start + 9),))),
            (f"is {book} open to readers", Answer("yes" if available[asked] else "no", paragraphs[asked])),
            (f"what is known about {book}", Answer("long", paragraphs[asked])),
            (f"who wrote {books[0]}", Answer()),  # which none of the paragraphs is about
        ],
        weights=(6, 4, 4, 2, 4),
    )[0]
    return Example(tuple(question.split()), tuple(document), tuple(paragraphs), (answer,))


class DummyDataset(Windows):
    """Needs no download. The answers can be learnt, so that a smoke run shows a falling loss."""

    def __init__(self, samples: int, shape: WindowShape, seed: int = 0) -> None:
        examples = DummyExamples(samples, seed)
        rows = [(number, start) for number in range(samples) for start in window_starts(examples[number], shape)]
        super().__init__(examples, np.array(rows, np.int64).reshape(-1, 2), shape)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", choices=("dummy", "natural-questions"), default="dummy")
    parser.add_argument("--samples", type=int, default=4096, help="of the dummy dataset")
    parser.add_argument("--data", help="simplified Natural Questions: a file that ends in .jsonl or .jsonl.gz")
    parser.add_argument("--cache", help="folder for the index of --data (default: where --data is)")
    parser.add_argument("--negatives", type=float, default=0.02, help="share of the windows without answer to use")


def open_datasets(options: argparse.Namespace, shape: WindowShape) -> tuple[Windows, Windows]:
    """What to train on, and what to evaluate on. Raises InputError."""
    if options.dataset == "dummy":
        return DummyDataset(options.samples, shape), DummyDataset(max(1, options.samples // 16), shape, seed=1)
    if not options.data:
        raise InputError("--dataset natural-questions needs --data FILE.jsonl")
    return open_windows(options.data, options.cache, shape, options.negatives)
