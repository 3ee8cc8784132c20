"""Finds out whether a module looks, while it is imported, at variables that will not be what they are now: those that
differ between ranks, and those that the program sets before it imports the module."""

import os
from collections.abc import Callable, ItemsView, ValuesView
from sys import _getframe
from types import TracebackType


class Found(BaseException):
    """A variable that must not be looked at was: the rest of the import is of no use."""


class Spy:
    """While it is entered, names that are asked for are compared with those given; `seen` has the ones found. The first
    ends the import with Found, unless the module catches that. Going through all variables does not count. For any
    other name `note` gets the answer as well."""

    def __init__(self, names: list[str], note: Callable[[str, str | None], None]) -> None:
        self.seen: set[str] = set()
        self._names = frozenset(names)
        self._note = note
        self._kind = type(os.environ)
        self._original = self._kind.__getitem__

    def __enter__(self) -> "Spy":
        original, names, seen = self._original, self._names, self.seen
        through_all = (ItemsView.__iter__.__code__, ValuesView.__iter__.__code__)

        def watched(environment: "os._Environ[str]", name: str) -> str:
            if _getframe(1).f_code in through_all:
                return original(environment, name)
            if os.fsdecode(name) in names:
                seen.add(os.fsdecode(name))
                raise Found
            self._remember(os.fsdecode(name))
            return original(environment, name)

        self._kind.__getitem__ = watched  # type: ignore[method-assign]
        return self

    def _remember(self, name: str) -> None:
        value = os.environ._data.get(os.fsencode(name))  # type: ignore[attr-defined]
        self._note(name, None if value is None else os.fsdecode(value))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kind.__getitem__ = self._original  # type: ignore[method-assign]
