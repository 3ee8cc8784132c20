"""Finds out whether a module looks, while it is imported, at variables that differ between ranks."""

import os
from types import TracebackType


class Spy:
    """While it is entered, names that are asked for are compared with those given; `seen` has the ones found."""

    def __init__(self, names: list[str]) -> None:
        self.seen: set[str] = set()
        self._names = frozenset(names)
        self._kind = type(os.environ)
        self._original = self._kind.__getitem__

    def __enter__(self) -> "Spy":
        original, names, seen = self._original, self._names, self.seen

        def watched(environment: "os._Environ[str]", name: str) -> str:
            if name in names:
                seen.add(name)
            return original(environment, name)

        self._kind.__getitem__ = watched  # type: ignore[method-assign]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._kind.__getitem__ = self._original  # type: ignore[method-assign]
