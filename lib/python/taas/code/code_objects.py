"""What compiled Python code names, without running it."""

from __future__ import annotations

import types
from typing import Iterator


def with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and that of the functions, classes and comprehensions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from with_inner(constant)
