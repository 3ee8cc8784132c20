"""Whose variables a cell in staying ranks has: what they have of their own, and what the notebook has sent them."""

from __future__ import annotations

import ast
import types
from typing import Any, Iterable

from ..variables.capture import Capture
from ..variables.names import reads_of

_OWN = object()
_MOST_NAMES = 12


class Variables:
    """A name that a cell has bound in a rank is that rank's own from then on. A variable that was sent is sent again when the
    notebook has given its name another object, which is why the last one is kept here."""

    def __init__(self, world_size: int) -> None:
        self.sent_to_0: dict[str, Any] = {}
        self._has: dict[int, dict[str, Any]] = {rank: {} for rank in range(world_size)}
        self._modules: set[str] = set()

    def in_all(self, ranks: Iterable[int]) -> tuple[set[str], dict[str, Any]]:
        """The names that all these ranks have of their own, and those that they have been sent, with the object."""
        own, sent = set(), {}
        for name in set.intersection(*(set(self._has[rank]) for rank in ranks)):
            objects = {id(value): value for rank in ranks if (value := self._has[rank][name]) is not _OWN}
            if not objects:
                own.add(name)
            elif len(objects) == 1:
                sent[name] = next(iter(objects.values()))
        return own, sent

    def is_in_0(self, name: str) -> bool:
        """Whether rank 0 has it."""
        return name in self._has[0]

    def wanted(self, rank: int, found: Capture, forced: Iterable[str]) -> list[str]:
        """What of it the rank is to take."""
        has = self._has[rank]
        return [name for name, value in found.values.items()
                if name in forced or name not in has or (has[name] is not _OWN and has[name] is not value)]

    def whose(self, tree: ast.Module, found: Capture, wanted: dict[int, list[str]]) -> str:
        """Which of the variables that a cell reads are the ranks', and which the notebook's as it has them now. Modules are nobody's."""
        taken = [name for name in found.names if any(name in names for names in wanted.values())]
        has = {name: value for rank in wanted for name, value in self._has[rank].items()}
        modules = {name for name, value in [*has.items(), *found.values.items()] if isinstance(value, types.ModuleType)}
        modules |= self._modules
        theirs = [name for name in reads_of(tree) if name in has and name not in taken and name not in modules]
        notebooks = [name for name in taken if name not in modules]
        return "; ".join(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {whose}"
                         for names, whose in ((theirs, "theirs"), (notebooks, "the notebook's")) if names)

    def learn(self, ended: dict[int, dict[str, Any]], wanted: dict[int, list[str]], found: Capture) -> None:
        """What ranks have said at the end of a cell."""
        for rank, message in ended.items():
            has = self._has[rank]
            if message["loaded"]:
                has.update({name: found.values[name] for name in wanted[rank]})
            has.update(dict.fromkeys(message["bound"], _OWN))
            for name in message["gone"]:
                has.pop(name, None)
            self._modules = self._modules - set(message["bound"]) | set(message["modules"])
        if 0 in ended:
            self.sent_to_0.update(found.values)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
