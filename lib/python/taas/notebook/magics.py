"""`%%taas`, which runs a cell on ranks, and `%taas`, which looks at runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class

from .cell import CellResult, run_cell, runs
from .errors import CellUsage
from .files.log_end import last_lines
from .run import Run

_USAGE = "%taas status, %taas logs [RANK] [LINES], %taas kill, %taas autoload; %%taas OPTIONS above a cell"
_STARTUP = '''"""Makes every IPython session and notebook of this profile know #!g2.8 and #pragma taas."""

get_ipython().run_line_magic("load_ext", "taas")
'''


@magics_class
class TaasMagics(Magics):
    """Registered by `%load_ext taas`."""

    @line_cell_magic
    def taas(self, line: str, cell: str | None = None) -> CellResult | None:
        """Runs the cell on ranks; as a line, looks at the runs of this kernel."""
        if cell is not None:
            return run_cell(self.shell, line, cell)
        command, *words = line.split() or [""]
        actions = {"status": self._status, "logs": self._logs, "kill": self._kill, "autoload": self._autoload}
        if command not in actions:
            raise CellUsage(f"%taas {command}: no such command; {_USAGE}")
        return actions[command](words)

    def _status(self, _: list[str]) -> None:
        run = _last()
        state = "running" if run.exit_code is None else f"ended with code {run.exit_code}"
        began = time.strftime("%H:%M:%S", time.localtime(run.began))
        print(f"run {run.name or '?'}: {state}, {run.world_size} ranks, begun {began}")
        for rank, words in sorted(run.ranks.items()):
            print(f"  rank {rank}: {words}")
        print(f"  folder: {run.folder or '?'}")

    def _logs(self, words: list[str]) -> None:
        rank, lines = (_number(words, 0, 0), _number(words, 1, 40))
        text = [line for file in _logs_of(_last(), rank) for line in last_lines(file, lines)]
        print("\n".join(text[-lines:]))

    def _kill(self, _: list[str]) -> None:
        alive = [run for run in runs if run.exit_code is None]
        for run in alive:
            run.kill()
        print(f"{len(alive)} run{'s' * (len(alive) != 1)} told to end")

    def _autoload(self, _: list[str]) -> None:
        shell: Any = self.shell
        path = Path(shell.profile_dir.startup_dir, "20-taas.py")
        path.write_text(_STARTUP)
        print(f"{path}: from now on every session of this profile loads taas; remove the file to end that")


def _last() -> Run:
    if not runs:
        raise CellUsage("no cell has run with %%taas in this kernel yet")
    return runs[-1]


def _number(words: list[str], index: int, default: int) -> int:
    try:
        return int(words[index]) if index < len(words) else default
    except ValueError:
        raise CellUsage(f"{words[index]}: not a number; {_USAGE}") from None


def _logs_of(run: Run, rank: int) -> list[Path]:
    """Where what a rank has printed is: its newest generation's log files."""
    named = [path for path in Path(run.folder).glob("generation-*") if path.name.rpartition("-")[2].isdecimal()]
    generations = sorted(named, key=lambda path: int(path.name.rpartition("-")[2]))
    files = [generations[-1] / f"rank-{rank:04}.{kind}" for kind in ("out", "err")] if generations else []
    return [file for file in files if file.is_file() and not file.is_symlink()]
