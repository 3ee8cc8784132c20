"""Values that cannot change, by their types."""

from __future__ import annotations

import datetime
import decimal
import fractions
import itertools
import operator
import pathlib
import pickle
import uuid
from typing import Any

import numpy
import torch

FROZEN = {
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(Ellipsis),
    range,
    torch.dtype,
    torch.device,
    torch.Size,
    pathlib.PosixPath,
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    *(kind for kind in numpy.sctypeDict.values() if kind not in (numpy.object_, numpy.void)),
}
_MOST_COMPARED = 100_000


def are_frozen(items: list[Any]) -> bool:
    """True for numbers, text and the like, and tuples of them: nothing that could change."""
    while items:
        kinds = set(map(type, items))
        tuples = {kind for kind in kinds if kind in (tuple, frozenset) or _is_named_tuple(kind)}
        if not kinds - tuples <= FROZEN:
            return False
        items = list(itertools.chain.from_iterable(item for item in items if type(item) in tuples)) if tuples else []
    return True


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and kind.__iter__ is tuple.__iter__ and not kind.__dictoffset__


def are_one(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


def are_equal(one: list[Any], other: list[Any]) -> bool:
    """Of lists of what cannot change. By pickles, for which 1, 1.0 and True differ, and 0.0 and -0.0."""
    if one is other:
        return True
    if len(one) != len(other) or are_one(one, other):
        return len(one) == len(other)
    exchanged = [pair for pair in zip(one, other) if pair[0] is not pair[1]]
    return len(exchanged) <= _MOST_COMPARED and all(
        pickle.dumps(left) == pickle.dumps(right) for left, right in exchanged
    )
