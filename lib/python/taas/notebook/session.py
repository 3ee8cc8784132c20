"""The kernel's own session: a Python that has imported torch, from which the ranks of cells start in tenths of a second
(`taas-run up`). It is made beside the first cell that uses torch, ends itself when no cell has wanted it for a while, and ends with
the kernel."""

from __future__ import annotations

import itertools
import os
import subprocess

from .command import environment, launcher
from .errors import CellUsage

IDLE_SECONDS = 600
_SWITCH = "TAAS_WARM"  # 0: none unless `%taas warm` asks for one
_SIZES = ("--gpus", "--nproc-per-node", "--nproc_per_node", "--gpus-per-node", "--devices-per-rank")
_numbers = itertools.count(1)


class Session:
    """What there is of one in this kernel."""

    def __init__(self) -> None:
        self.wanted = os.environ.get(_SWITCH, "1") != "0"
        self._name = ""
        self._up: subprocess.Popen[str] | None = None

    def words(self) -> list[str]:
        """For a cell's command: where its launcher comes from. None while there is no session yet, nor when it has ended itself."""
        if self._up is None or self._up.poll() != 0 or not self._is_there():
            return []
        return ["--in", self._name]

    def begin(self, words: list[str]) -> None:
        """Makes one for cells with these options of taas-run, in the background; once."""
        if not self.wanted or (self._up is not None and (self._up.poll() is None or self._is_there())):
            return
        self._name = f"kernel-{os.getpid()}-{next(_numbers)}"
        command = [launcher(), "up", "--name", self._name, "--idle", str(IDLE_SECONDS), "--end-with", str(os.getpid()), *_sizes(words)]
        self._up = subprocess.Popen(command, env=environment(""), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True, start_new_session=True)

    def make(self, words: list[str]) -> str:
        """Now, in place of one with other options. Returns what taas-run says of it. Raises CellUsage."""
        self.end()
        self.wanted = True
        self.begin(words)
        assert self._up is not None
        said, complaint = self._up.communicate()
        if self._up.returncode != 0:
            raise CellUsage(complaint.strip().removeprefix("taas-run: "))
        return said.splitlines()[0].removeprefix("taas-run: ")

    def end(self) -> None:
        """No cell comes from it any more; those under way go on."""
        if self._up is not None:
            self._up.wait()
            subprocess.run([launcher(), "down", self._name], stdin=subprocess.DEVNULL, capture_output=True)
        self._up = None

    def state(self) -> str:
        """In a line."""
        said = subprocess.run([launcher(), "sessions"], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
        own = [line for line in said.splitlines() if self._name and line.startswith(f"{self._name} ")]
        without = "no session; a cell with torch makes one" if self.wanted else "no session; %taas warm makes one"
        return own[0] if own else without

    def _is_there(self) -> bool:
        return self.state().startswith(f"{self._name} ")


def _sizes(words: list[str]) -> list[str]:
    """Those options among a cell's that say how many ranks there are."""
    taken: list[str] = []
    for number, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if name in _SIZES:
            taken += [word] if equals else words[number:number + 2]
    return taken


session = Session()
"""This kernel's."""
