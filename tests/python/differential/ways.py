"""The ways in which a pipeline is run: plain, and registered, its batches made by data workers."""

import dataclasses

from .pipeline import Pipeline

INTERRUPTED_AT = 2
"""The batch of the last epoch before which a resumed way is interrupted."""


@dataclasses.dataclass(frozen=True)
class Way:
    """How the program is run. A plain loader with num_workers=0 has one worker, as data workers count it."""

    num_workers: int
    data_workers: int = 2
    kills: bool = False
    resumes: bool = False

    @property
    def is_registered(self) -> bool:
        return self.data_workers > 0

    def __str__(self) -> str:
        made = f"registered, data workers: {self.data_workers}" if self.is_registered else "plain"
        parts = [made, f"num_workers={self.num_workers}"]
        return ", ".join(parts + ["one dies"] * self.kills + ["resumed"] * self.resumes)


def reference(pipeline: Pipeline, num_workers: int) -> Way:
    """What the others are compared with: plain, or registered where random numbers are a function of their own."""
    return Way(num_workers, data_workers=1 if pipeline.random else 0)


def registered(pipeline: Pipeline) -> list[Way]:
    """One is disturbed, and one resumed, where more than an epoch tells something."""
    last = pipeline.num_workers[-1]
    ways = [Way(number) for number in pipeline.num_workers] + [Way(last, kills=True)] * pipeline.survives
    return ways + [Way(last, resumes=True)] * (pipeline.resumes and pipeline.epochs > 1)
