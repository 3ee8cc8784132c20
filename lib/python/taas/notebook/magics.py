"""`%%taas` and `%%rank`, which run a cell on ranks, and `%taas`, which looks at runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from IPython.core.magic import Magics, cell_magic, line_cell_magic, magics_class

from . import pragma
from .cell import CellResult, run_cell, runs
from .errors import CellUsage
from .files.log_end import last_lines
from .options import parse, parse_rank
from .run import Run
from .session import session
from .staying.cells import end_set, run_on_ranks, run_staying, states

_USAGE = ("%taas status, %taas logs [RANK] [LINES], %taas kill, %taas warm [N|off], %taas stay, %taas end [NAME], %taas autoload; "
          "%%taas OPTIONS above a cell; %%rank 0,2 above a cell for ranks that stay")
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
            options = parse(line, pragma.read_head(cell.splitlines()))
            text = cell if options.of_pragma else "\n" + cell  # line for line as in the notebook
            if options.of:
                raise CellUsage(f"--of {options.of}: %%rank has this option; all ranks of a set run a cell with --stay={options.of}")
            return (run_staying if options.stay else run_cell)(self.shell, options, text)
        command, *words = line.split() or [""]
        actions = {"status": self._status, "logs": self._logs, "kill": self._kill, "warm": self._warm,
                   "stay": self._stay, "end": self._end, "autoload": self._autoload}
        if command not in actions:
            raise CellUsage(f"%taas {command}: no such command; {_USAGE}")
        return actions[command](words)

    @cell_magic
    def rank(self, line: str, cell: str) -> CellResult | None:
        """Runs the cell on some of the ranks that stay: `%%rank 0,2 [--of NAME]`."""
        return run_on_ranks(self.shell, parse_rank(line, pragma.read_head(cell.splitlines())), "\n" + cell)

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

    def _warm(self, words: list[str]) -> None:
        if words == ["off"]:
            session.end()
            session.wanted = False
        elif words:
            _number(words, 0, 0)
            print(session.make(["--nproc-per-node", words[0]]))
            return
        print(session.state())

    def _stay(self, _: list[str]) -> None:
        print("\n".join(states()))

    def _end(self, words: list[str]) -> None:
        print(end_set(self.shell, " ".join(words)))

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
