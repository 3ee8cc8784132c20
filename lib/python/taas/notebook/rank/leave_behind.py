"""--pull in rank 0: variables for the kernel."""

from __future__ import annotations

import io
import os
from typing import Any

from ...runtime import own_files
from ..variables.memory import Memory
from ..variables.objects import Sender, Uncapturable
from .connection import Connection
from .facts import Facts


def send(connection: Connection, facts: Facts, captured: dict[str, Any], namespace: dict[str, Any]) -> None:
    """Sends what the cell was asked to bring back, and one line for each variable for which that cannot be done.
    Functions and classes that came from the kernel, as `captured` has them, go back as their names; but not those that
    are asked for themselves, which the cell may have changed."""
    if not facts["pull"] or os.environ.get("RANK") not in (None, "0"):
        return
    asked = {id(namespace[name]) for name in facts["pull"] if name in namespace}
    known = {id(value): name for name, value in captured.items() if id(value) not in asked}
    file, memory = io.BytesIO(), Memory()
    sender = Sender(file, namespace, memory, gpus=True, known=lambda obj: known.get(id(obj)))
    names, troubles = [], []
    for name in facts["pull"]:
        trouble = _dump(sender, file, name, namespace)
        troubles.append(trouble) if trouble else names.append(name)
        if trouble and name in namespace:
            break  # what the pickler has begun would be missing in what follows
    path = os.path.join(facts.folder, "pulled")
    with own_files.new_file(path) as out:
        memory.write(out)
    connection.send(
        "pulled", names=names, troubles=troubles, values=file.getvalue().hex(), places=sender.places, memory=path
    )


def _dump(sender: Sender, file: io.BytesIO, name: str, namespace: dict[str, Any]) -> str | None:
    if name not in namespace:
        return f"--pull {name}: rank 0 has no such variable at the cell's end"
    end = file.tell()
    try:
        sender.dump(namespace[name])
        return None
    except Exception as error:
        file.truncate(end)
        why = str(error) if isinstance(error, Uncapturable) else f"{error}".splitlines()[0]
        return (
            f"--pull {name} ({type(namespace[name]).__qualname__}): cannot be brought back: {why}\n"
            "  either pull a part of it that can (of a DistributedDataParallel its .module), or save it to a file in "
            "rank 0"
        )
