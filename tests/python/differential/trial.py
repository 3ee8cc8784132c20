"""Runs a pipeline in all its ways, and says where a registered one differs from the plain one."""

import functools
import re
from typing import Any, Callable, Sequence

from .child import run_all
from .pipeline import Pipeline
from .program import Program
from .ways import Way, reference, registered


def faults_of(pipeline: Pipeline, data_workers: Callable[[int], Any]) -> list[str]:
    """One line for each way in which the promise is not kept.

    Each registered program is the only rank of a run, which `data_workers` starts.
    """
    ways, references = registered(pipeline), [reference(pipeline, number) for number in pipeline.num_workers]
    seconds = pipeline.seconds * (3 if pipeline.full else 1)

    def in_a_run(way: Way, action: Callable[..., Any], *more: Any) -> Any:
        run = data_workers(way.data_workers)
        run.keep()
        return run_all({0: functools.partial(action, pipeline, way, run.workers, *more)}, seconds)[0]

    plain = [way for way in references if not way.is_registered]
    seen = run_all({way: functools.partial(_whole, pipeline, way, ()) for way in plain}, seconds)
    for way in (*references, *ways):
        if way.resumes:
            first, *state = in_a_run(way, _until_interrupted)
            seen[way] = [*first, *(in_a_run(way, _from, state[0]) if state and state[0] else [])]
        elif way.is_registered:
            seen[way] = in_a_run(way, _whole)
    wrong = [
        f"{way}: the pipeline itself raised {said}"
        for way in references
        if (said := _said(seen[way])) and not pipeline.raises
    ]
    return wrong + [line for way in ways if (line := _fault(pipeline, way, seen))]


def _whole(pipeline: Pipeline, way: Way, workers: Sequence[Any]) -> list[Any]:
    program = Program(pipeline, way, workers)
    program.run()
    return program.seen


def _until_interrupted(pipeline: Pipeline, way: Way, workers: Sequence[Any]) -> tuple[list[Any], Any]:
    program = Program(pipeline, way, workers)
    state = program.run_until_interrupted()
    return program.seen, state


def _from(pipeline: Pipeline, way: Way, workers: Sequence[Any], state: Any) -> list[Any]:
    program = Program(pipeline, way, workers)
    program.run_on(state)
    return program.seen


def _fault(pipeline: Pipeline, way: Way, seen: dict[Way, list[Any]]) -> str:
    expected = seen[reference(pipeline, way.num_workers)]
    line = _not_refused(pipeline, seen[way]) if pipeline.refused else difference(expected, seen[way])
    if not line and pipeline.says and not re.search(pipeline.says, said := _said(seen[way])):
        line = f"its exception does not say {pipeline.says!r}{said}"
    return f"{way}: {line}" if line else ""


def _not_refused(pipeline: Pipeline, seen: list[Any]) -> str:
    if len(seen) < 2 or seen[0][0] != "raised":
        return f"not refused: its loop saw {str(seen[:1])[:200]}"
    text = seen[1][1]
    is_said = re.search(pipeline.refused, text) and len(text.splitlines()) == 1
    return "" if is_said else f"refused with other words: {text}"


def difference(expected: list[Any], seen: list[Any]) -> str:
    """The first one; nothing where the two saw the same. What an exception says may differ, its type may not."""
    for one, other in zip(expected, seen):
        if one != other and one[0] != "which said":
            return f"{one[0]}: {' '.join(_first_difference(one, other))}"[:600] + _said(seen)
    if len(expected) != len(seen):
        longer = expected if len(expected) > len(seen) else seen
        return (
            f"only the {'reference' if longer is expected else 'registered'} loop saw "
            f"{str(longer[min(len(expected), len(seen))])[:200]}"
        )
    return ""


def _said(seen: list[Any]) -> str:
    return f" (it said: {seen[-1][1]})" if seen and seen[-1][0] == "which said" else ""


def _first_difference(one: Any, other: Any) -> tuple[str, ...]:
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)) and len(one) == len(other):
        for left, right in zip(one, other):
            if left != right:
                return _first_difference(left, right)
    return f"expected {str(one)[:250]},", f"saw {str(other)[:250]}"
