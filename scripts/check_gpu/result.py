"""What a check comes to."""

import dataclasses
from collections.abc import Callable

GREEN, RED, SKIPPED = "green", "red", "skipped"


class Skip(Exception):
    """This machine lacks what the check needs; the text is what."""


class Red(Exception):
    """What should hold does not; the text is one line. `details` goes below the table of the report."""

    def __init__(self, seen: str, details: str = ""):
        super().__init__(seen)
        self.details = details


@dataclasses.dataclass(frozen=True)
class Seen:
    """What a check that is green has measured."""

    line: str
    details: str = ""  # Markdown


@dataclasses.dataclass(frozen=True)
class Check:
    name: str
    shows: str  # one line, for --list and the report
    run: Callable
    gpus: int = 1  # fewer: it is skipped


@dataclasses.dataclass(frozen=True)
class Result:
    check: Check
    state: str
    seen: str
    details: str = ""
    seconds: float = 0.0


CHECKS: list[Check] = []


def check(name: str, shows: str, gpus: int = 1):
    """Registers a function that is given a Session and returns Seen, or raises Skip or Red."""

    def register(run: Callable) -> Callable:
        CHECKS.append(Check(name, shows, run, gpus))
        return run

    return register
