"""The ways in which a pipeline is run: plain, and registered in all the forms that delivery has."""

import dataclasses

from .pipeline import Pipeline

INTERRUPTED_AT = 2
"""The batch of the last epoch before which a resumed way is interrupted."""


@dataclasses.dataclass(frozen=True)
class Way:
    """How the program is run. `processes` is TAAS_DATA_WORKERS; `machines` are the process ids of a run's workers."""

    num_workers: int
    is_registered: bool = True
    processes: int | None = None
    start_method: str = ""
    kills: bool = False
    resumes: bool = False
    on_machines: bool = False
    machines: tuple[int, ...] = ()
    as_with_one: bool = False
    """Plain, with num_workers=0, but for one worker: what a registered loader with num_workers=0 promises."""

    def __str__(self) -> str:
        where = "on two machines" if self.on_machines else f"in {self.processes} processes"
        parts = [f"registered, made {where}" if self.is_registered else "plain", f"num_workers={self.num_workers}"]
        parts += ["but for one worker"] * self.as_with_one
        parts += [self.start_method] * bool(self.start_method) + ["one dies"] * self.kills + ["resumed"] * self.resumes
        return ", ".join(parts)


def plain(pipeline: Pipeline, full: bool) -> list[Way]:
    """What the others are compared with, by num_workers; with `full` also with workers that are started."""
    ways = [Way(number, is_registered=False) for number in pipeline.num_workers]
    ways += [Way(0, is_registered=False, as_with_one=True) for number in pipeline.num_workers if not number]
    if full:
        ways += [Way(number, is_registered=False, start_method="spawn") for number in pipeline.num_workers if number]
    return [way for way in ways if _possible(pipeline, way)]


def registered(pipeline: Pipeline, full: bool) -> list[Way]:
    """The quick ones; with `full` all of them, of which those whose workers import torch first take seconds."""
    ways = [way for number in pipeline.num_workers for way in (_all(number) if full else _quick(number))]
    if pipeline.spawns and not full:
        ways.append(Way(2, processes=1, start_method="spawn"))
    if pipeline.epochs == 1 and not full:
        ways = [way for way in ways if not way.resumes]
    return [way for way in ways if _possible(pipeline, way)]


def _quick(number: int) -> list[Way]:
    if not number:
        return [Way(number, processes=count) for count in (0, 2)]
    return [
        Way(number, processes=1),
        Way(number, processes=4, kills=True),
        Way(number, processes=2, resumes=True),
        Way(number, on_machines=True),
    ]


def _all(number: int) -> list[Way]:
    ways = [Way(number, processes=count) for count in (0, 1, 2, 4)]
    ways += [Way(number, processes=count, kills=True) for count in (2, 4)]
    ways += [
        Way(number, processes=2, resumes=True),
        Way(number, on_machines=True),
        Way(number, on_machines=True, resumes=True),
        Way(number, on_machines=True, kills=True),
    ]
    if number:
        ways.append(Way(number, processes=2, start_method="spawn"))
    return ways


def _possible(pipeline: Pipeline, way: Way) -> bool:
    return (
        (pipeline.resumes or not way.resumes)
        and (pipeline.sent or not _sends(way))
        and (pipeline.alone or way.processes != 0)
        and not (pipeline.refused and way.start_method and not way.is_registered)
    )


def _sends(way: Way) -> bool:
    return way.on_machines or way.start_method == "spawn"
