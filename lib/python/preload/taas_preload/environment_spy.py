"""Finds out whether a module looks, while it is imported, at variables that will not be what they are now: those that
differ between ranks, and those that the program sets before it imports the module."""

import os
from collections.abc import ItemsView, ValuesView
from sys import _getframe
from types import TracebackType


class Found(BaseException):
    """A variable that must not be looked at was: the rest of the import is of no use."""


class Spy:
    """While it is entered, names that are asked for are compared with those given; `seen` has the ones found. The first
    ends the import with Found, unless the module catches that. Going through all variables does not count."""

    def __init__(self, names: list[str]) -> None:
        self.seen: set[str] = set()
        self._names = frozenset(names)
        self._kind = type(os.environ)
        self._original = self._kind.__getitem__

    def __enter__(self) -> "Spy":
        original, names, seen = self._original, self._names, self.seen
        through_all = (ItemsView.__iter__.__code__, ValuesView.__iter__.__code__)

        def watched(environment: "os._Environ[str]", name: str) -> str:
            if os.fsdecode(name) in names and _getframe(1).f_code not in through_all:
                seen.add(os.fsdecode(name))
                raise Found
            return original(environment, name)

        self._kind.__getitem__ = watched  # type: ignore[method-assign]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kind.__getitem__ = self._original  # type: ignore[method-assign]
