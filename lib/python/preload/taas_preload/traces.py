"""What the execution of a module changes outside of it, as far as a program could see that at its first line."""

import _warnings
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Iterable
    from typing import Any

    Action = Callable[[], object]

_HOOKS = ("displayhook", "excepthook", "unraisablehook")


def _lists() -> "tuple[list[Any], ...]":
    """Those that are in use: a program may put others in their place, as warnings.catch_warnings() does."""
    filters = getattr(sys.modules.get("warnings", _warnings), "filters")  # noqa: B009
    return sys.meta_path, sys.path_hooks, sys.path, filters


class Surface:
    """What is there now. `modules` are the names of those that are to be seen."""

    def __init__(self, modules: "frozenset[str]") -> None:
        self.modules = modules
        self._lists = [list(each) for each in _lists()]
        self._hooks = [getattr(sys, name) for name in _HOOKS]
        self._recursion_limit = sys.getrecursionlimit()
        self._loggers = frozenset(_loggers())

    def restore(self) -> None:
        for each, items in zip(_lists(), self._lists, strict=True):
            each[:] = items
        _filters_changed()
        for name, hook in zip(_HOOKS, self._hooks, strict=True):
            setattr(sys, name, hook)
        sys.setrecursionlimit(self._recursion_limit)
        loggers = _loggers()
        for name in [name for name in loggers if name not in self._loggers]:
            del loggers[name]


class Traces:
    """Notes changes as actions that make them again."""

    def __init__(self, note: "Callable[[Action], None]") -> None:
        self._note = note
        self._lists = [(each, list(each)) for each in _lists()]  # not those of a catch_warnings() in a module
        self._hooks = [getattr(sys, name) for name in _HOOKS]
        self._recursion_limit = sys.getrecursionlimit()
        self._environment = dict(os.environ._data)  # type: ignore[attr-defined]
        self._count_of_loggers = 0
        self._set_level: "Callable[..., None] | None" = None
        self._levels: dict[str, int] = {}
        self._placeholders: list[tuple[str, Any]] = []  # for loggers that may come
        self._written: Callable[[], Iterable[tuple[int, bytes]]] = tuple

    def watch_output(self, written: "Callable[[], Iterable[tuple[int, bytes]]]") -> None:
        """`written` returns what has been written to which stream since it was last asked."""
        self._written = written

    def _watch_levels(self, logging: "Any") -> None:
        """From now on it is known which loggers got a level, even if it is none."""
        self._set_level = logging.Logger.setLevel

        def set_level(logger: "logging.Logger", level: "int | str") -> None:
            self._set_level(logger, level)
            self._levels[logger.name] = logger.level

        logging.Logger.setLevel = set_level

    def watch_exits(self) -> None:
        """From now on functions are not registered with `atexit` but noted."""
        import atexit

        self._register = atexit.register

        def register(function: "Any", /, *arguments: "Any", **named: "Any") -> "Any":
            self._note(lambda: self._register(function, *arguments, **named))
            return function

        atexit.register = self._watched = register

    def end(self) -> None:
        if self._set_level is not None:
            sys.modules["logging"].Logger.setLevel = self._set_level
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", {})
            for name in [name for name, value in names.items() if value is self._watched]:
                names[name] = self._register

    def note_changes(self, last: bool) -> None:
        for number, (each, before) in enumerate(self._lists):
            if each != before:
                self._note_growth(number, each, before)
        for number, name in enumerate(_HOOKS):
            if (hook := getattr(sys, name)) is not self._hooks[number]:
                self._hooks[number] = hook
                self._note(lambda name=name, hook=hook: setattr(sys, name, hook))  # type: ignore[misc]
        if (limit := sys.getrecursionlimit()) != self._recursion_limit:
            self._recursion_limit = limit
            self._note(lambda: sys.setrecursionlimit(limit))
        if os.environ._data != self._environment:  # type: ignore[attr-defined]
            self._note_environment()
        if hasattr(logging := sys.modules.get("logging"), "Logger"):
            if self._set_level is None:
                self._watch_levels(logging)
            loggers = _loggers()
            if last or len(loggers) != self._count_of_loggers:
                self._note_loggers(loggers)
        for stream, text in self._written():
            self._note(lambda stream=stream, text=text: write(stream, text))  # type: ignore[misc]

    def _note_growth(self, number: int, each: "list[Any]", before: "list[Any]") -> None:
        new = [item for item in each if all(item is not old for old in before)]
        front = next((i for i, item in enumerate(each) if all(item is not other for other in new)), len(each))
        before[:] = each
        self._note(lambda: _grow(_lists()[number], new[:front], new[front:]))

    def _note_loggers(self, loggers: "dict[str, Any]") -> None:
        new = [(name, loggers[name]) for name, old in self._placeholders if loggers[name] is not old]
        new += list(loggers.items())[self._count_of_loggers :]
        self._count_of_loggers = len(loggers)
        names = dict(self._placeholders + new)
        self._placeholders = [(name, loggers[name]) for name in names if not hasattr(loggers[name], "handlers")]
        if ready := [(name, logger) for name, logger in new if hasattr(logger, "handlers")]:
            self._note(lambda: _add_loggers(ready, self._levels))

    def _note_environment(self) -> None:
        before, self._environment = self._environment, dict(os.environ._data)  # type: ignore[attr-defined]
        for name, value in self._environment.items():
            if before.get(name) != value:
                self._note(lambda name=name, old=before.get(name), value=value: _set_variable(name, old, value))  # type: ignore[misc]


def write(stream: int, text: bytes) -> None:
    """What the stream does not take is lost, as the rest of the program's output will be."""
    python = sys.stdout if stream == 1 else sys.stderr
    try:
        if python is not None:
            python.flush()
        while text:
            text = text[os.write(stream, text) :]
    except OSError:
        pass


def _grow(each: "list[Any]", front: "list[Any]", back: "list[Any]") -> None:
    """As warnings.filterwarnings() does it: an equal item gives way to one in front, and bars one behind."""
    for item in reversed(front):
        if item in each:
            each.remove(item)
        each.insert(0, item)
    each.extend(item for item in back if item not in each)
    _filters_changed()


def _filters_changed() -> None:
    if hasattr(_warnings, "_acquire_lock"):  # Python 3.14
        _warnings._acquire_lock()
        _warnings._filters_mutated_lock_held()  # type: ignore[attr-defined]
        _warnings._release_lock()  # type: ignore[attr-defined]
    else:
        _warnings._filters_mutated()  # type: ignore[attr-defined]


def _set_variable(name: bytes, old: "bytes | None", value: bytes) -> None:
    if os.environb.get(name) == old:
        os.environb[name] = value


def _loggers() -> "dict[str, Any]":
    manager = getattr(getattr(sys.modules.get("logging"), "Logger", None), "manager", None)
    return getattr(manager, "loggerDict", {})


def _add_loggers(new: "list[tuple[str, Any]]", levels: dict[str, int]) -> None:
    import logging

    manager = logging.Logger.manager
    for name, logger in new:
        there = manager.loggerDict.get(name)
        if isinstance(there, logging.Logger):
            _share_state(there, logger, levels)
            continue
        logger._cache.clear()  # type: ignore[attr-defined]  # the program may have set levels meanwhile
        own = manager.loggerClass or logging.getLoggerClass()
        if own is not logging.Logger and type(logger) is logging.Logger:  # and a class of its own
            logger.__class__ = own
            logger.__dict__ = {**own(name).__dict__, **logger.__dict__}
        manager.loggerDict[name] = logger
        if there is not None:
            manager._fixupChildren(there, logger)  # type: ignore[attr-defined]
        manager._fixupParents(logger)  # type: ignore[attr-defined]


def _share_state(programs: "logging.Logger", modules: "logging.Logger", levels: dict[str, int]) -> None:
    """The program has set up a logger, before the module that has one of the same name was imported: both share all."""
    programs.level = levels.get(programs.name, programs.level)
    programs.handlers += [handler for handler in modules.handlers if handler not in programs.handlers]
    programs.propagate = programs.propagate and modules.propagate
    modules.__dict__ = programs.__dict__
