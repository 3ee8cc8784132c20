"""What comes of the tasks of a stream that the ranks share."""

from __future__ import annotations

import dataclasses

from ..batch.outcome import Ended, Outcome, Ready
from ..order.common_stream import CommonStream
from ..order.task import Task


def opened(stream: CommonStream, task: Task, outcome: Outcome) -> Outcome:
    """The batch without what came with it, which all ranks compare. Raises UnequalOrder. See worker.dealt_shard."""
    if not isinstance(outcome, Ready):
        return outcome
    (digest, samples), batch = outcome.batch
    stream.read(task, int(digest), is_end=not samples)
    return dataclasses.replace(outcome, batch=batch, samples=int(samples)) if samples else Ended()
