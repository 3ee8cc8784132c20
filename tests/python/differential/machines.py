"""Two data workers that play CPU machines, for all pipelines together: each would import torch for seconds else."""

from typing import Any

import pytest


class Machines:
    """Wraps the `Run` of conftest.py. `variables` let a process be a rank of it."""

    def __init__(self, run: Any, variables: dict[str, str]) -> None:
        self._run = run
        self.variables = variables

    def pids(self) -> tuple[int, ...]:
        return tuple(worker.pid for worker in self._run.workers)

    def revive(self) -> None:
        """Starts the workers that a way has killed in their places."""
        for index, worker in enumerate(self._run.workers):
            if worker.poll() is not None:
                self._run.workers[index] = self._started(index)

    def _started(self, index: int) -> Any:
        with pytest.MonkeyPatch.context() as environment:
            for name, value in self.variables.items():
                environment.setenv(name, value)
            return self._run.start_worker(index)


def variables_of(environment: dict[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in ("TAAS_DATA_PLAN", "TAAS_EVENTS")}
