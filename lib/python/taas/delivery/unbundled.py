"""The outcomes of tasks that were answered together."""

from __future__ import annotations

from typing import Any

from ..batch import untree
from ..batch.outcome import Bundle, Ended, Failed, Outcome, Ready
from ..runtime import native
from ..worker.answer import Over, Raised
from ..worker.bundled import Unbundled
from ..worker.errors import unpickled


def bundle_of(description: str, payload: Any, where: str, apart: bool = True) -> Bundle:
    """`where` names the maker; for the rest see untree.decode."""
    answers = Unbundled(description, payload)
    outcomes: list[Outcome] = []
    for each in answers:
        if isinstance(each, Over):
            outcomes.append(Ended())
        elif isinstance(each, Raised):
            outcomes.append(Failed(unpickled(*each), each.text, where))
        else:
            described, part = each
            outcomes.append(Ready(untree.decode(described, part, apart), part.nbytes, native.digest(part), described))
    return Bundle(outcomes, answers.seconds)
