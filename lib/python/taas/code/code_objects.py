"""What compiled Python code names, without running it."""

from __future__ import annotations

import dis
import types
from typing import Any, Iterator


def with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and that of the functions, classes and comprehensions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from with_inner(constant)


def stored_in_a_module(function: Any) -> list[str]:
    """The globals that a function stores. None for one of the main module, which is sent with globals of its own."""
    function = getattr(function, "func", function)  # of a partial
    if getattr(function, "__module__", "__main__") == "__main__" or not hasattr(function, "__code__"):
        return []
    stored = {
        str(step.argval)
        for code in with_inner(function.__code__)
        for step in dis.get_instructions(code)
        if step.opname == "STORE_GLOBAL"
    }
    return sorted(stored)
