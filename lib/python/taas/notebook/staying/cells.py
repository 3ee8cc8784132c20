"""Cells in ranks that stay, from their text to their end; and the end of the ranks."""

from __future__ import annotations

import ast
import os
import time
from typing import Any

from ..cell import (CellResult, cell_names, check_pulled, mentions_torch, note_run, prompt_number, registered_in,
                    say_what_is_unusual, search_path, tree_of)
from ..command import command, environment, protects, writes_apart
from ..dry_run import tell
from ..errors import CellUsage, RankFailed
from ..failure import failure_of
from ..files.folder import CellFolder
from ..files.private_files import sort_private_files
from ..folds import numbers
from ..options import CellOptions
from ..plan import check_ranks, over_several_machines, plan_of
from ..session import session
from ..variables import pull
from ..variables.capture import Capture, capture
from ..view import View
from .run import StayingRun
from .variables import Variables

sets: dict[str, StayingSet] = {}
"""Those of this kernel, by their names."""
_lost: dict[str, str] = {}
"""Those that have ended without being told to, until others have their name: what they were."""


class StayingSet:
    """Ranks that stay: their run, which begins with the first cell, and their variables."""

    def __init__(self, options: CellOptions, plan: dict[str, Any], since: int) -> None:
        self.name, self.since = options.stay, since
        self.words = options.launcher
        self.world_size: int = plan["world_size"]
        self.gpus = plan["device"] != "cpu"
        self.variables = Variables(self.world_size)
        self.cells: dict[str, int] = {}
        self.run: StayingRun | None = None
        self.folder = CellFolder()
        self.writing = options.protect, options.rank_output
        self.project = os.getcwd() if protects(options) else None
        self.apart = os.getcwd() if writes_apart(options) else None

    def __str__(self) -> str:
        return f"{numbers(list(range(self.world_size)))} of `{self.name}` (since In[{self.since}])"

    @property
    def has_ended(self) -> bool:
        """Whether the ranks have ended since their last cell."""
        return self.run is not None and self.run.exit_code is not None

    def state(self) -> str:
        """In a word or two."""
        if self.run is None or self.run.is_busy:
            return "running a cell"
        return "ended" if self.has_ended else f"idle for {time.time() - self.run.idle_since:.0f} s"

    def start(self, options: CellOptions, uses_torch: bool) -> StayingRun:
        """Makes the run, whose launcher the first cell starts."""
        words = command(options, self.folder.path, None, uses_torch, session.words() if uses_torch else [])
        self.run = StayingRun(self.name, words, environment(self.folder.path), self.folder)
        return self.run

    def failure(self, verdict: dict[str, Any], shell: Any) -> RankFailed:
        """The exception for a verdict, or for that of one cell."""
        assert self.run is not None
        return failure_of(verdict, self.world_size, self.run.failures, cell_names(shell, self.cells), self.project)

    def close(self, view: View) -> None:
        """The ranks have ended."""
        sets.pop(self.name, None)
        if self.run and self.run.idle_since:  # a cell has ended in them
            _lost[self.name] = f"{self} have ended, and their variables are lost"
        if self.run and self.apart and self.run.folder:
            for line in sort_private_files(self.run.folder, self.apart, self.run.began):
                view.say(f"taas: {line}")
        self.folder.remove()


def run_staying(shell: Any, options: CellOptions, text: str) -> CellResult | None:
    """Runs a cell in all ranks of a set, which it begins if there is none of that name. Raises CellError and Interrupted."""
    tree, view = tree_of(text), View(shell, options.ranks)
    say_what_is_unusual(options, view)
    _look_for_loss(options.stay, view, shell)
    if lost := _lost.pop(options.stay, ""):
        view.say(f"taas: {lost}; new ranks begin")
    if options.stay in sets:
        _check_same(sets[options.stay], options)
        staying = sets[options.stay]
    else:
        plan = plan_of(options)
        _check_possible(plan)
        staying = StayingSet(options, plan, prompt_number(shell))
    try:
        return _run(shell, staying, list(range(staying.world_size)), options, text, tree, view)
    finally:
        if staying.run is None:
            staying.folder.remove()


def run_on_ranks(shell: Any, options: CellOptions, text: str) -> CellResult | None:
    """Runs a cell in some ranks of a set: `%%rank`. Raises CellError and Interrupted."""
    tree, view = tree_of(text), View(shell, options.ranks)
    name = options.of or _only_set("%%rank", "--of NAME")
    _look_for_loss(name, view, shell)
    staying = _set_of(name)
    check_ranks("%%rank", options.ranks, staying.world_size)
    return _run(shell, staying, options.ranks, options, text, tree, view)


def end_set(shell: Any, name: str) -> str:
    """Lets the ranks end; returns a line about it. Raises CellUsage and Interrupted."""
    name, view = name or _only_set("%taas end", "%taas end NAME"), View(shell, [0])
    _look_for_loss(name, view, shell)
    staying = _set_of(name)
    assert staying.run is not None
    if staying.run.is_busy:
        raise CellUsage(f"{staying} are running a cell: %taas kill ends them all the same")
    try:
        code = staying.run.end(view)
    finally:
        staying.close(view)
        _lost.pop(name, None)
    return f"{staying} have ended" + f" with code {code}" * (code != 0)


def states() -> list[str]:
    """A line for each set."""
    return [f"{staying}: {staying.state()}" for staying in sets.values()] or [_known()]


def _known() -> str:
    alive = _alive()
    return f"there are {', '.join(f'`{name}`' for name in alive)}" if alive else "no ranks stay: a cell with %%taas --stay begins some"


def _alive() -> list[str]:
    return [name for name, staying in sets.items() if not staying.has_ended]


def _only_set(what: str, way_out: str) -> str:
    names = _alive() or [*sets, *_lost]
    if len(names) != 1:
        raise CellUsage(f"{what}: {f'which ranks? {way_out} says it; ' * bool(_alive())}{_known()}")
    return names[0]


def _set_of(name: str) -> StayingSet:
    if name in _lost:
        raise CellUsage(f"{_lost[name]}; %%taas --stay begins new ones")
    if name not in sets:
        raise CellUsage(f"{name}: no ranks of this name stay; {_known()}")
    return sets[name]


def _look_for_loss(name: str, view: View, shell: Any) -> None:
    """Says how ranks have ended that did so between cells."""
    staying = sets.get(name)
    if staying is None or staying.run is None or not staying.has_ended or staying.run.is_busy:
        return
    try:
        if staying.run.end(view) and staying.run.verdict:
            for line in staying.failure(staying.run.verdict, shell)._render_traceback_():
                view.say(line)
    except CellUsage as error:
        view.say(str(error))
    finally:
        staying.close(view)


def _check_possible(plan: dict[str, Any]) -> None:
    """Raises CellUsage for what ranks that live from cell to cell cannot have."""
    if over_several_machines(plan):
        raise CellUsage("--stay: ranks of other machines cannot stay: the kernel's socket does not reach them; leave it out")
    if plan["data"]:
        raise CellUsage("--stay: not with CPU machines, which prepare the batches of one cell; leave --stay or --cpus out")
    if plan["max_restarts"]:
        raise CellUsage(f"--stay: not with --max-restarts {plan['max_restarts']}: ranks that start again have lost their variables")


def _check_same(staying: StayingSet, options: CellOptions) -> None:
    """Raises CellUsage where the cell asks for other ranks than there are."""
    check_ranks("--ranks", options.ranks, staying.world_size)
    if not options.launcher or options.launcher == staying.words:
        return
    size = plan_of(options)["world_size"]
    begun, asked = " ".join(staying.words) or "no options", " ".join(options.launcher)
    what = f"has {staying.world_size} ranks, and this cell asks for {size}" if size != staying.world_size else f"began with {begun}"
    raise CellUsage(f"{asked}: `{staying.name}` {what}; leave the options out, choose another name (--stay=NAME), or end these ranks "
                    f"(%taas end {staying.name})")


def _run(shell: Any, staying: StayingSet, ranks: list[int], options: CellOptions, text: str, tree: ast.Module,
         view: View) -> CellResult | None:
    if staying.run and staying.run.is_busy:
        raise CellUsage(f"{staying} are running another cell")
    if (options.protect, options.rank_output) not in (staying.writing, (True, "private")):
        raise CellUsage(f"--no-protect, --rank-output: where {staying} may write was decided when they began; leave it out, or end "
                        f"them (%taas end {staying.name})")
    if options.pull and 0 not in ranks:
        raise CellUsage(f"--pull {','.join(options.pull)}: it brings back what rank 0 has, which does not run this cell")
    found = _captured(shell, staying, ranks, options, tree)
    check_pulled([name for name in options.pull if not staying.variables.is_in_0(name)], tree, found)
    wanted = {rank: staying.variables.wanted(rank, found, options.capture) for rank in ranks}
    whose = staying.variables.whose(tree, found, wanted)
    who = f"{numbers(ranks)} of `{staying.name}` " + (f"(since In[{staying.since}])" if staying.run else "begin here")
    view.tell(who + ": " * bool(whose) + whose)
    if options.dry_run:
        options.launcher = staying.words
        tell(options, found, registered_in(found), None, view)
        return None
    code = _run_captured(shell, staying, options, text, found, wanted, view)
    run = staying.run
    assert run is not None
    if code:
        failure = staying.failure(run.verdict or {}, shell)
        failure.details += tuple(filter(None, [_lost.get(staying.name)]))
        raise failure
    if run.failures:
        first, *others = run.failures
        raise staying.failure({"culprit": first, "exit_code": 1, "consequences": others,
                               "hint": f"{staying} go on with their variables"}, shell)
    if options.pull:
        pull.take(run.pulled, shell.user_ns, options.pull, staying.variables.sent_to_0)
    return CellResult(view.result) if view.result else None


def _captured(shell: Any, staying: StayingSet, ranks: list[int], options: CellOptions, tree: ast.Module) -> Capture:
    own, sent = staying.variables.in_all(ranks)
    for name in options.capture:
        own.discard(name)
        sent.pop(name, None)
    return capture(tree, shell.user_ns, hidden=shell.user_ns_hidden, gpus=staying.gpus, without=[*options.no_capture, *own],
                   also=options.capture, sent=sent)


def _run_captured(shell: Any, staying: StayingSet, options: CellOptions, text: str, found: Capture, wanted: dict[int, list[str]],
                  view: View) -> int | None:
    """Returns the run's exit code if it has ended."""
    folder = staying.folder
    if staying.run:
        folder.add_cell()
    folder.write(text, found, {"registered": registered_in(found), "pull": options.pull, "seed": None, "path": search_path(),
                               "apart": staying.apart, "stays": True})
    staying.cells[folder.cell] = prompt_number(shell)
    run = staying.run or staying.start(options, mentions_torch(text, found))
    note_run(run)
    sets[staying.name] = staying
    try:
        return run.run_cell(view, {rank: {"kind": "cell", "folder": folder.path, "wanted": names} for rank, names in wanted.items()})
    finally:
        if run.is_alive:
            staying.variables.learn(run.ended, wanted, found)
        else:
            staying.close(view)
