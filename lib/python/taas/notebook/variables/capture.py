"""What goes from the kernel into a cell: the variables that it reads, and those that the captured functions read."""

from __future__ import annotations

import ast
import io
import linecache
import sys
import types
from dataclasses import dataclass, field
from typing import Any, Sequence

from ..errors import CaptureError
from .memory import Memory
from .names import reads_of, words_of
from .objects import Sender, Uncapturable


@dataclass
class Capture:
    """The captured variables, pickled one after the other, and where their memory is to be. `words` are what the code
    of the functions among them mentions."""

    names: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    data: bytes = b""
    memory: Memory = field(default_factory=Memory)
    places: list[tuple[int, int, bool]] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)


def capture(
    tree: ast.Module,
    namespace: dict[str, Any],
    *,
    hidden: dict[str, Any],
    gpus: bool,
    without: Sequence[str] = (),
    also: Sequence[str] = (),
) -> Capture:
    """The variables of `namespace` for a cell.

    `hidden` are the shell's own, `without` and `also` the user's choice; ranks have `gpus` or not. Raises CaptureError
    that names all variables that cannot be captured.
    """
    found = Capture()
    file = io.BytesIO()
    sender = Sender(file, namespace, found.memory, gpus=gpus)
    wanted = {**reads_of(tree), **{name: 0 for name in also}}
    troubles = []
    while wanted:
        name, line = next(iter(wanted.items()))
        del wanted[name]
        if name in found.values or name in without or name not in namespace or _is_shells_own(name, namespace, hidden):
            continue
        found.values[name] = namespace[name]
        if trouble := _dump(sender, name, namespace[name], line):
            troubles.append(trouble)
        wanted.update({new: 0 for new in sender.names if new not in wanted and new not in found.values})
    if troubles:
        raise CaptureError("\n".join(troubles))
    found.names, found.data, found.places = list(found.values), file.getvalue(), sender.places
    code = compile(tree, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    found.words = sender.words
    found.modules = _submodules(found.values, sender.words | words_of(code))
    found.sources = _sources(namespace)
    return found


def _is_shells_own(name: str, namespace: dict[str, Any], hidden: dict[str, Any]) -> bool:
    return name in hidden and hidden[name] is namespace[name] or name in ("In", "Out", "get_ipython")


def _dump(sender: Sender, name: str, value: Any, line: int) -> str | None:
    try:
        sender.dump(value)
        return None
    except Exception as error:
        return _trouble(sender, name, value, line, error)


def _trouble(sender: Sender, name: str, value: Any, line: int, error: Exception) -> str:
    """Two lines: what it is, and the two ways out."""
    path, part, error = _culprit(sender, name, value, error)
    why = str(error) if isinstance(error, Uncapturable) else _first_line(error)
    fix = error.fix if isinstance(error, Uncapturable) else "define it in the cell"
    where = f"line {line} of the cell reads" if line else "what the cell calls reads"
    inside = "" if path == name else f", and in it {path} ({_type(part)})"
    return (
        f"{where} {name} ({_type(value)}){inside}, which cannot be sent to ranks: {why}\n"
        f"  either {fix}, or leave it out with --no-capture {name}"
    )


def _culprit(sender: Sender, path: str, value: Any, error: Exception, depth: int = 5) -> tuple[str, Any, Exception]:
    """The innermost part that cannot be pickled, with the way to it."""
    if isinstance(error, Uncapturable) and error.about is value:
        return path, value, error
    for step, part in _parts(value) if depth else ():
        try:
            Sender(io.BytesIO(), sender._namespace, Memory(), gpus=sender._gpus).dump(part)
        except Exception as inner:
            return _culprit(sender, path + step, part, inner, depth - 1)
    return path, value, error


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"[{key!r}]", part) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{index}]", part) for index, part in enumerate(value)]
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or ())
        return [(f".{name} (a variable of its closure)", cell.cell_contents) for name, cell in cells]
    own = {} if isinstance(value, (type, types.ModuleType)) else getattr(value, "__dict__", {})
    return [(f".{name}", part) for name, part in own.items()]


def _type(value: Any) -> str:
    kind = type(value)
    return (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _submodules(values: dict[str, Any], words: set[str]) -> list[str]:
    """Modules like xml.dom that the code reaches through a captured xml: somebody has imported them, so must ranks."""
    roots = {value.__name__ for value in values.values() if isinstance(value, types.ModuleType)}
    found = []
    for name in list(sys.modules):
        root = next((root for root in roots if name.startswith(root + ".")), None)
        if root and set(name[len(root) + 1 :].split(".")) <= words:
            found.append(name)
    return sorted(found)


def _sources(namespace: dict[str, Any]) -> dict[str, str]:
    """The text of the notebook's cells, by the file names that are in the code of their functions: for tracebacks."""
    return {name: "".join(entry[2]) for name, entry in linecache.cache.items() if len(entry) == 4 and _is_cell(name)}


def _is_cell(name: str) -> bool:
    return "ipykernel_" in name or name.startswith("<ipython-input")
