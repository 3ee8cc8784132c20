"""The globals of the program's own modules that code looks up."""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
import types
from typing import Any, Iterator

from .code_objects import with_inner
from .plain import is_plain


def looked_up(function: types.FunctionType) -> Iterator[tuple[str, str, Any]]:
    """(module, name, value) of the globals that its code names, and of what it may look up in modules."""
    named, in_text = _named_in(function.__code__)
    for name in named & function.__globals__.keys():
        yield function.__module__, name, function.__globals__[name]
    for module in _modules_by(named, in_text, function.__globals__):
        for name in (named | in_text) & vars(module).keys():
            if is_own(module.__name__) or (is_plain(vars(module)[name]) and not name.startswith("__")):
                yield module.__name__, name, vars(module)[name]


@functools.lru_cache(maxsize=4096)
def _named_in(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The names in code, and the texts."""
    codes = list(with_inner(code))
    return (
        frozenset(name for code in codes for name in code.co_names),
        frozenset(text for code in codes for text in code.co_consts if isinstance(text, str)),
    )


def _modules_by(names: frozenset[str], texts: frozenset[str], known: dict[str, Any]) -> list[types.ModuleType]:
    """The modules that code names, those included that it imports itself, or finds by a text."""
    found = [known.get(name, sys.modules.get(name)) for name in names] + [sys.modules.get(text) for text in texts]
    return [module for module in found if isinstance(module, types.ModuleType)]


@functools.lru_cache(maxsize=4096)
def is_own(module: str | None) -> bool:
    """True for modules of the program.

    These are outside of Python's own folders and of installed packages (wherever a .pth file or PYTHONPATH has them),
    and not taas.

    What is of a module that is not there came by value, as only the program's own code does.
    """
    if module == "__main__" or module and module not in sys.modules:
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if not module or not file or module.partition(".")[0] == "taas":
        return False
    path = os.path.abspath(file)
    return not path.startswith(_installed()) and not {"site-packages", "dist-packages"} & set(path.split(os.sep))


@functools.lru_cache(maxsize=1)
def _installed() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")] + site.getsitepackages()
    return tuple(os.path.abspath(folder) + os.sep for folder in [*folders, site.getusersitepackages()])
