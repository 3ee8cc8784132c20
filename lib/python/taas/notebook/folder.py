"""A cell's folder: the cell as a file, what it captured, and the socket. Lives as long as the cell runs.

    cell.py        the cell's text, line for line
    cell.json      what ranks have to know (rank/cell.py reads it)
    values         the captured variables, pickled
    memory         the memory of their tensors and arrays, mapped by ranks; in /dev/shm where that has room
    taas_cell.py   the variables as a module: for data workers, and for processes that ranks spawn
    ranks          the Unix socket to the kernel
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from .capture import Capture

MODULE = "taas_cell"
_SHARED = "/dev/shm"
_MODULE_TEXT = '''"""Variables of a notebook, for processes that import them."""

from taas.notebook.rank.again import restore

restore(globals(), __file__)
'''


class CellFolder:
    """Private to this user. `place` is where all machines of the run find it; by default only this one does."""

    def __init__(self, place: str | None = None) -> None:
        sweep()
        if place:
            os.makedirs(place, exist_ok=True)
        self.path = tempfile.mkdtemp(prefix=_prefix(), dir=place)
        self._only_here = place is None
        self.memory = os.path.join(self.path, "memory")
        # Its path is short wherever the folder is: a socket's may have 107 letters.
        self._socket_folder = tempfile.mkdtemp(prefix=_prefix()) if place else self.path
        self.socket = os.path.join(self._socket_folder, "ranks")

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
        facts = {**facts, "names": capture.names, "places": capture.places, "modules": capture.modules,
                 "sources": capture.sources, "memory": self.memory, "socket": self.socket}
        Path(self.path, "cell.json").write_text(json.dumps(facts))

    def _write_memory(self, capture: Capture) -> None:
        if self._only_here and 0 < capture.memory.size < _room(_SHARED):
            handle, self.memory = tempfile.mkstemp(prefix=_prefix(), dir=_SHARED)
            os.close(handle)
        with open(self.memory, "wb") as file:
            capture.memory.write(file)

    def remove(self) -> None:
        """The cell has ended."""
        for path in {self.path, self._socket_folder}:
            shutil.rmtree(path, ignore_errors=True)
        if os.path.dirname(self.memory) == _SHARED and os.path.exists(self.memory):
            os.unlink(self.memory)


def sweep() -> None:
    """Removes what killed kernels of this user have left on this machine."""
    for base in {tempfile.gettempdir(), _SHARED}:
        for name in os.listdir(base) if os.path.isdir(base) else ():
            head, _, pid = name.rpartition("-")[0].rpartition("-")
            if head == _prefix().rpartition("-")[0].rpartition("-")[0] and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                path = os.path.join(base, name)
                shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.unlink(path)


def _prefix() -> str:
    return f"taas-cell-{os.getuid()}-{os.getpid()}-"


def _room(folder: str) -> int:
    """How much may be put there: half of what is free."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0
    return status.f_bavail * status.f_frsize // 2
