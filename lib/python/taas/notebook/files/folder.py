"""A cell's folder: the cell as a file, what it captured, and the socket. Lives as long as the cell runs.

cell.py        the cell's text, line for line
cell.json      what ranks have to know (rank/cell.py reads it)
values         the captured variables, pickled
memory         the memory of their tensors and arrays, mapped by ranks; in /dev/shm where that has room
taas_cell.py   the variables as a module: for data workers, and for processes that ranks spawn
ranks          the Unix socket to the kernel
lock           held by the kernel (kept.py)
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from ..variables.capture import Capture
from .kept import Kept, sweep
from .remover import Remover

MODULE = "taas_cell"
_SHARED = "/dev/shm"
_MODULE_TEXT = '''"""Variables of a notebook, for processes that import them."""

from taas.notebook.rank.again import restore

restore(globals(), __file__)
'''


class CellFolder:
    """Private to this user. `place` is where all machines of the run find it; by default only this one does."""

    def __init__(self, place: str | None = None) -> None:
        here = tempfile.gettempdir()
        for base in {here, _SHARED}:
            sweep(base)
        if place:
            os.makedirs(place, exist_ok=True)
        self._only_here = place is None
        self._remover = Remover()
        self._kept: list[Kept] = []
        self._folder = Kept.folder(place or here)
        self._keep(self._folder)
        # Its path is short wherever the folder is: a socket's may have 107 letters.
        self.socket = os.path.join(self._keep(Kept.folder(here)) if place else self.path, "ranks")
        self.memory = os.path.join(self.path, "memory")

    @property
    def path(self) -> str:
        """The folder."""
        return self._folder.path

    @property
    def cell(self) -> str:
        """The file of the cell's text."""
        return os.path.join(self.path, "cell.py")

    def write(self, text: str, capture: Capture, facts: dict[str, Any]) -> None:
        """All but the socket. `facts` go into cell.json. Raises OSError."""
        Path(self.cell).write_text(text)
        Path(self.path, f"{MODULE}.py").write_text(_MODULE_TEXT)
        Path(self.path, "values").write_bytes(capture.data)
        self._write_memory(capture)
        facts = {
            **facts,
            "names": capture.names,
            "places": capture.places,
            "modules": capture.modules,
            "sources": capture.sources,
            "memory": self.memory,
            "socket": self.socket,
        }
        Path(self.path, "cell.json").write_text(json.dumps(facts))

    def _write_memory(self, capture: Capture) -> None:
        if self._only_here and 0 < capture.memory.size < _room(_SHARED):
            self.memory = self._keep(Kept.file(_SHARED))
        with open(self.memory, "wb") as file:
            capture.memory.write(file)

    def _keep(self, kept: Kept) -> str:
        self._kept.append(kept)
        self._remover.add(kept.path)
        return kept.path

    def remove(self) -> None:
        """The cell has ended."""
        while self._kept:
            self._kept.pop().remove()
        self._remover.close()


def _room(folder: str) -> int:
    """How much may be put there: half of what is free."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0
    return status.f_bavail * status.f_frsize // 2
