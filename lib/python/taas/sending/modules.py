"""Values of modules that the program sets while it runs: data workers have those of the import, and a line says so.

Compared are plain values alone (numbers, texts, and containers of them) of the program's own modules and of their
classes. Nothing is carried over.
"""

from __future__ import annotations

import dis
import os
import sys
import types
from typing import Any, Iterator

_LONGEST = 200
_MOST = 2000
_MOST_ITEMS = 64
_NUMBERS = (type(None), bool, int, float, complex)
_PYTHONS = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


def plain_values() -> dict[str, str]:
    """In a rank: their texts by "module:name" and "module:Class.name"."""
    found: dict[str, str] = {}
    tops = {name.partition(".")[0] for name in list(sys.modules)} - sys.stdlib_module_names - {"__main__"}
    own = {top for top in tops if getattr(sys.modules.get(top), "__file__", None) is None or is_own(top)}
    for name in sorted(sys.modules):
        if name.partition(".")[0] in own and is_own(name):
            found.update(_of(name))
    return dict(list(found.items())[:_MOST])


def differences(theirs: dict[str, str]) -> list[str]:
    """In a data worker: a line for each that is otherwise in a module that it has."""
    modules = {place.partition(":")[0] for place in theirs} & sys.modules.keys()
    mine = {place: text for module in modules for place, text in _of(module)}
    return [
        _line(place.replace(":", "."), text, mine[place])
        for place, text in theirs.items()
        if mine.get(place, text) != text
    ]


def _line(name: str, text: str, mine: str) -> str:
    is_shown = not {"'", '"'} & {*text, *mine}  # strings may be secrets
    values = f"is {text} in the program and {mine}" if is_shown else "is not in the program what it is"
    return f"{name} {values} where the module is imported: data workers see the latter; give it to the dataset"


def _of(module: str) -> Iterator[tuple[str, str]]:
    for name, value in list(vars(sys.modules[module]).items()):
        if isinstance(value, type) and value.__module__ == module:
            yield from _named(f"{module}:{name}.", vars(value))
        else:
            yield from _named(f"{module}:", {name: value})


def _named(prefix: str, values: Any) -> Iterator[tuple[str, str]]:
    for name, value in list(values.items()):
        if not name.startswith("_") and _is_plain(value) and len(text := repr(value)) <= _LONGEST:
            yield prefix + name, text


def _is_plain(value: Any, depth: int = 2) -> bool:
    kind = type(value)
    if kind in (str, bytes):
        return len(value) <= _LONGEST
    if kind in _NUMBERS:
        return value == value and (kind is not int or value.bit_length() <= _LONGEST)
    if not depth or kind not in (list, tuple, dict) or len(value) > _MOST_ITEMS:
        return False
    return all(_is_plain(part, depth - 1) for part in ([*value, *value.values()] if kind is dict else value))


def is_own(module: str) -> bool:
    """True for modules of the program.

    These are outside of Python's own folder and of installed packages, wherever a .pth file or PYTHONPATH has them.
    """
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file or file.startswith(_PYTHONS) or module.partition(".")[0] in ("taas", "taas_preload"):
        return False
    return not {"site-packages", "dist-packages"} & set(file.split(os.sep))


def stored_by(function: Any) -> list[str]:
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


def with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and that of the functions, classes and comprehensions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from with_inner(constant)
