"""Samples of Python's own: classes, subclasses of containers, numbers, strings, keys."""

import collections
import datetime
import decimal
import enum
import fractions
import pathlib
import uuid

from differential.pipeline import of_samples
from pipelines.samples import loader_of


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Tokens(dict):
    """A dictionary with attributes, as HF's BatchEncoding."""


class Words(list):
    pass


class Text(str):
    pass


def of_classes(index):
    tokens = Tokens(ids=[1, index])
    tokens.encoding = "utf-8"
    return [
        Colour.RED,
        Level.HIGH,
        tokens,
        Words([1, 2]),
        Text("abc"),
        collections.OrderedDict(b=1, a=2),
        collections.deque([1], 3),
        collections.defaultdict(list, a=[1]),
        collections.Counter("abca"),
        frozenset({index}),
        {index},
        range(index),
        slice(1, index),
    ]


@of_samples()
def subclasses_of_containers(workers):
    return loader_of(of_classes, workers)


def of_the_library(index):
    return [
        decimal.Decimal(index) / 7,
        fractions.Fraction(index, 7),
        datetime.datetime(2024, 1, 1 + index),
        pathlib.PurePosixPath("/a") / str(index),
        uuid.UUID(int=index),
        datetime.timedelta(index),
        complex(index, -0.0),
        bytearray(b"abc"),
        memoryview(b"abc").tobytes(),
        ...,
    ]


@of_samples()
def objects_of_the_standard_library(workers):
    return loader_of(of_the_library, workers)


def numbers(index):
    return [
        index,
        -index,
        2**70 + index,
        -(2**63),
        True,
        None,
        0.1 * index,
        float("nan"),
        float("-inf"),
        -0.0,
        5e-324,
        1 << 4000,
    ]


@of_samples()
def numbers_of_python(workers):
    return loader_of(numbers, workers)


def strings(index):
    return [
        "",
        "a\0b",
        "é" * index,
        "\ud800 alone",
        "\U0001f600",
        "a\nb\r\n\u2028",
        b"",
        b"\xff\0" * index,
        '"quoted\\',
        "x" * 5000,
    ]


@of_samples()
def strings_and_bytes(workers):
    return loader_of(strings, workers)


def keys(index):
    return {
        1: "int",
        "1": "str",
        (1, "a"): "tuple",
        None: "none",
        2.5: "float",
        "t": 1,
        b"b": 2,
        frozenset({1}): 3,
        index + 10: "i",
    }


@of_samples()
def keys_that_are_no_strings(workers):
    return loader_of(keys, workers)


def deep(index):
    nested = index
    for _ in range(30):
        nested = {"a": [nested, ()]}
    return nested


@of_samples()
def nested_deeply(workers):
    return loader_of(deep, workers)


@of_samples(num_workers=(2,), epochs=1)
def lists_of_python(workers):
    return loader_of(lambda index: {"tokens": list(range(index, index + 2000)), "text": ["word"] * 500}, workers)
