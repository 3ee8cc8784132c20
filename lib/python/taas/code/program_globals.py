"""The globals of the program's own modules that a loader's code looks at: what it sees of them must be what the rank has."""

from __future__ import annotations

import ast
import functools
import os
import site
import sys
import sysconfig
import types
from typing import Any, Iterator

import numpy
import torch

from .code_objects import with_inner
from .recipe import Recipe

_MOST = 400
_LONGEST = 2000
_PARTS = 32
_DEPTH = 4
_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def seen_by(recipe: Recipe) -> dict[str, Any]:
    """By "module:name": the text of a plain value, or what tells an array or another object from its next state."""
    found: dict[str, Any] = {}
    for module, name, value in _looked_at(recipe):
        found[f"{module}:{name}"] = _told(value)
        if len(found) >= _MOST:
            break
    return found


def sendable(seen: dict[str, Any]) -> dict[str, str]:
    """Those that other processes are given: plain values of modules that they import, but paths, which are a machine's own."""
    return {name: text for name, text in seen.items()
            if isinstance(text, str) and not name.startswith("__main__:") and text[1:2] != os.sep}


def changed(seen: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """The names of what cannot be sent and is not what it was."""
    return [name for name, told in seen.items() if not isinstance(told, str) and before.get(name, told) != told]


def take(values: dict[str, str]) -> None:
    """In a data worker: modules that are there have the rank's values."""
    for name, text in values.items():
        module, _, attribute = name.partition(":")
        names = getattr(sys.modules.get(module), "__dict__", {})
        if attribute not in names or _told(names[attribute]) != text:
            names[attribute] = ast.literal_eval(text)


def _told(value: Any) -> Any:
    if _is_plain(value) and len(text := repr(value)) <= _LONGEST and "nan" not in text and "inf" not in text:
        return text
    if isinstance(value, torch.Tensor):
        return [id(value), value._version]
    if isinstance(value, numpy.ndarray) and value.size <= _LONGEST and not value.dtype.hasobject:
        return [id(value), value.tobytes().hex()]
    return [id(value), len(value) if isinstance(value, (list, tuple, dict, set)) else 0]


def _is_plain(value: Any, depth: int = 3) -> bool:
    if type(value) in _PLAIN:
        return True
    if not depth or type(value) not in (list, tuple, dict) or len(value) > _LONGEST:
        return False
    parts = [*value, *value.values()] if type(value) is dict else value
    return all(_is_plain(part, depth - 1) for part in parts)


def _looked_at(recipe: Recipe) -> Iterator[tuple[str, str, Any]]:
    """(module, name, value) of what the code of the recipe, and functions and classes that it names, look up."""
    waiting = [recipe.collate_fn, recipe.worker_init_fn, recipe.dataset]
    known: set[int] = set()
    while waiting:
        what = waiting.pop()
        for function in _functions(what):
            if id(function.__code__) in known or not is_own(function.__module__):
                continue
            known.add(id(function.__code__))
            for module, name, value in looked_up(function):
                if isinstance(value, (types.FunctionType, type)):
                    waiting.append(value)
                elif not isinstance(value, (types.ModuleType, types.BuiltinFunctionType)):
                    yield module, name, value


def _functions(what: Any, depth: int = _DEPTH) -> list[types.FunctionType]:
    """The code of a function, of a class, or of an object's class and of the objects that it holds."""
    if isinstance(what, types.FunctionType):
        return [what]
    if isinstance(what, type):
        members = [getattr(member, "__func__", member) for cls in what.__mro__ if is_own(cls.__module__)
                   for member in vars(cls).values()]
        return [member for member in members if isinstance(member, types.FunctionType)]
    if not depth or isinstance(what, (*_PLAIN, torch.Tensor, numpy.ndarray, types.ModuleType)):
        return []
    if isinstance(what, (list, tuple)):
        return [function for part in what[:_PARTS] for function in _functions(part, depth - 1)]
    inner = list(getattr(what, "__dict__", {}).values())[:_PARTS]
    return _functions(type(what)) + [function for part in inner for function in _functions(part, depth - 1)]


def looked_up(function: types.FunctionType) -> Iterator[tuple[str, str, Any]]:
    """(module, name, value) of the globals that its code names, and of what it may look up in modules."""
    named, in_text = _named_in(function.__code__)
    for name in named & function.__globals__.keys():
        yield function.__module__, name, function.__globals__[name]
    for module in _modules_by(named, function.__globals__):
        for name in (named | in_text) & vars(module).keys():
            if is_own(module.__name__) or (_is_plain(vars(module)[name]) and not name.startswith("__")):
                yield module.__name__, name, vars(module)[name]


@functools.lru_cache(maxsize=4096)
def _named_in(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The names in code, and the texts."""
    codes = list(with_inner(code))
    return (frozenset(name for code in codes for name in code.co_names),
            frozenset(text for code in codes for text in code.co_consts if isinstance(text, str)))


def _modules_by(names: frozenset[str], known: dict[str, Any]) -> list[types.ModuleType]:
    """The modules that code names, those included that it imports itself."""
    found = [known.get(name, sys.modules.get(name)) for name in names]
    return [module for module in found if isinstance(module, types.ModuleType)]


@functools.lru_cache(maxsize=4096)
def is_own(module: str | None) -> bool:
    """True for modules of the program: those outside of Python's own folders and of installed packages (wherever a .pth file or
    PYTHONPATH has them), and not taas.

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
