"""Runs a pipeline in all its ways, and says where a registered one differs from the plain one."""

import functools
import os
import re
from typing import Any, Callable

from .child import Result, run_all
from .pipeline import Pipeline
from .program import Program
from .ways import Way, plain, registered


def faults_of(pipeline: Pipeline, machines: Any, full: bool, chosen: list[Way] | None = None) -> list[str]:
    """One line for each way in which the promise is not kept.

    `machines` is a run with two data workers; `chosen` are the ways that are tried, where they are not all.
    """
    ways = registered(pipeline, full) if chosen is None else chosen
    baselines = plain(pipeline, full or any(way.start_method for way in ways))
    killing, seconds = [way for way in ways if way.kills and way.on_machines], pipeline.seconds * (3 if full else 1)
    results = run_all(
        {way: _action(pipeline, way, machines) for way in baselines + ways if way not in killing}, seconds
    )
    for way in killing:
        results |= run_all({way: _action(pipeline, way, machines)}, seconds)
        machines.revive()
    wrong = [
        f"{way}: the pipeline itself raised {said}"
        for way in baselines
        if (said := _said(results[way].value)) and not pipeline.raises and not way.start_method and not way.as_with_one
    ]
    return wrong + [line for way in ways for line in _fault(pipeline, way, results)]


def _action(pipeline: Pipeline, way: Way, machines: Any) -> Callable[[], Any]:
    return functools.partial(_run, pipeline, way, machines)


def _run(pipeline: Pipeline, way: Way, machines: Any) -> list[Any]:
    if way.on_machines:
        os.environ.update(machines.variables)
        way = way.__class__(**{**vars(way), "machines": machines.pids()})
    if not way.resumes:
        program = Program(pipeline, way)
        program.run()
        return program.seen
    seen, *state = run_all({0: lambda: _until_interrupted(pipeline, way)}, pipeline.seconds)[0].value
    if state and state[0] is not None:
        program = Program(pipeline, way)
        program.run_on(state[0])
        seen += program.seen
    return seen


def _until_interrupted(pipeline: Pipeline, way: Way) -> tuple[list[Any], Any]:
    program = Program(pipeline, way)
    state = program.run_until_interrupted()
    return program.seen, state


def _fault(pipeline: Pipeline, way: Way, results: dict[Way, Result]) -> list[str]:
    result = results[way]
    expected = results[_reference(pipeline, way)]
    if (
        pipeline.refused
        and way.is_registered
        and (way.processes or way.on_machines or difference(expected.value, result.value))
    ):
        return [f"{way}: {line}" for line in _not_refused(pipeline, result)]
    line = difference(expected.value, result.value)
    if line and way.kills and pipeline.after_a_death and re.search(pipeline.after_a_death, _said(result.value)):
        return []
    if line and pipeline.may_be_refused and not _not_refused(pipeline, result):
        return []
    if line and any(not difference(other.value, result.value) for other in _as_good(way, results)):
        return []
    if not line and pipeline.says and way.is_registered and not re.search(pipeline.says, said := _said(result.value)):
        line = f"its exception does not say {pipeline.says!r}{said}"
    if (
        not line and pipeline.falls_back and way.is_registered and not way.on_machines
    ):  # a run's remarks go to the launcher
        line = _without_its_line(pipeline, result)
    return [f"{way}: {line}"] if line else []


def _reference(pipeline: Pipeline, way: Way) -> Way:
    if pipeline.random and way.is_registered:
        return next(each for each in registered(pipeline, False) if each.num_workers == way.num_workers)
    return _plain_and_started(way) if pipeline.as_spawned else Way(way.num_workers, is_registered=False)


def _as_good(way: Way, results: dict[Way, Result]) -> list[Result]:
    """What the batches of a registered way may be like as well."""
    found = [results.get(_plain_and_started(way))] if way.start_method else []
    if not way.num_workers:
        found.append(results.get(Way(0, is_registered=False, as_with_one=True)))
    return [each for each in found if each]


def _plain_and_started(way: Way) -> Way:
    """Where workers are started, registered ones may be as forks are: they have what the program has set."""
    return Way(way.num_workers, is_registered=False, start_method=way.start_method)


def _not_refused(pipeline: Pipeline, result: Result) -> list[str]:
    seen = result.value[:2]
    if len(seen) < 2 or seen[0][0] != "raised":
        return [f"not refused: its loop saw {str(seen[:1])[:200]}"]
    text = seen[1][1]
    return (
        []
        if re.search(pipeline.refused, text) and len(text.splitlines()) == 1
        else [f"refused with other words: {text}"]
    )


def _without_its_line(pipeline: Pipeline, result: Result) -> str:
    found = [line for line in result.output.splitlines() if re.search(pipeline.falls_back, line)]
    return (
        ""
        if len(found) == 1
        else f"{len(found)} lines of the output match {pipeline.falls_back!r}: {result.output[:500]}"
    )


def difference(expected: list[Any], seen: list[Any]) -> str:
    """The first one; nothing where the two saw the same. What an exception says may differ, its type may not."""
    for one, other in zip(expected, seen):
        if one != other and one[0] != "which said":
            return f"{one[0]}: {' '.join(_first_difference(one, other))}"[:600] + _said(seen)
    if len(expected) != len(seen):
        longer = expected if len(expected) > len(seen) else seen
        return (
            f"only the {'plain' if longer is expected else 'registered'} loop saw "
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
