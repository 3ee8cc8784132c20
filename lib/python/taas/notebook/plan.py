"""What taas-run is going to do with a cell's options: asked before anything is started."""

from __future__ import annotations

import json
import os
from typing import Any

from .command import ask
from .errors import CellUsage
from .options import CellOptions


def plan_of(options: CellOptions) -> dict[str, Any]:
    """What `taas-run --dry-run --json` says. Raises CellUsage for wrong options."""
    plan = json.loads(ask(["--json", *options.launcher, "-m", "taas.notebook.rank"]))
    if wrong := [rank for rank in options.ranks if not 0 <= rank < max(1, plan["world_size"])]:
        raise CellUsage(f"--ranks {wrong[0]}: there are ranks 0 to {plan['world_size'] - 1}")
    return plan


def over_several_machines(plan: dict[str, Any]) -> bool:
    """Whether ranks or data workers may run where this machine's memory, temporary folder and sockets are not: by the
    options, or because the kernel is within an allocation of SLURM."""
    data = plan["data"]
    if plan["way"] == "this machine":
        return bool(data and data["hosts"])
    here = os.uname().nodename.partition(".")[0]
    names = {node["hostname"].partition(".")[0] for node in plan["nodes"]}
    return names != {here} or plan["spares"] > 0 or data is not None
