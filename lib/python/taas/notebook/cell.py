"""A distributed cell from its text to its end."""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import Any

from . import pragma, settings
from .command import command, environment, landlock_supported, protects, writes_apart
from .dry_run import tell
from .errors import CellUsage
from .failure import failure_of
from .files.folder import CellFolder
from .files.private_files import sort_private_files
from .options import CellOptions, parse
from .plan import over_several_machines, plan_of
from .run import Run
from .variables import pull
from .variables.capture import Capture, capture
from .variables.names import may_bind
from .view import View

runs: list[Run] = []
"""All runs of this kernel, the newest last; `%taas` looks at them."""
_KEPT = 20
_IPYTHONS = re.compile(r"^[%!]|^[\w., ]+=\s*[%!]|\?$")
_WITH_TORCH = ("torch", "lightning", "transformers", "accelerate", "deepspeed")


class CellResult:
    """The value of rank 0's last expression, as rank 0 displays it: bring the value itself back with --pull."""

    def __init__(self, message: dict[str, Any]) -> None:
        self._message = message

    def __repr__(self) -> str:
        return str(self._message["data"].get("text/plain", ""))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._message["data"], self._message["metadata"]


def run_cell(shell: Any, line: str, text: str) -> CellResult | None:
    """Runs a cell as its options say; `line` is the magic's. Raises CellError and Interrupted."""
    options = parse(line, pragma.read_head(text.splitlines()))
    text = text if options.of_pragma else "\n" + text  # line for line as in the notebook
    tree = _tree(text)
    view = View(shell, options.ranks)
    _say_what_is_unusual(options, view)
    plan = plan_of(options)
    found = capture(
        tree,
        shell.user_ns,
        hidden=shell.user_ns_hidden,
        gpus=plan["device"] != "cpu",
        without=options.no_capture,
        also=options.capture,
    )
    _check_pulled(options.pull, tree, found)
    registered = _registered(found)
    prepared = next(iter(registered), None) if _has_cpus(options) else None
    if options.dry_run:
        tell(options, found, registered, prepared, view)
        return None
    folder = CellFolder(os.path.abspath("taas-runs/cells") if over_several_machines(plan) else None)
    return _run(shell, options, text, folder, found, registered, prepared, view)


def _run(
    shell: Any,
    options: CellOptions,
    text: str,
    folder: CellFolder,
    found: Capture,
    registered: dict[str, dict[str, Any]],
    prepared: str | None,
    view: View,
) -> CellResult | None:
    """Removes the folder in the end."""
    try:
        apart = os.getcwd() if writes_apart(options) else None
        set_before, unread = settings.captured(shell)
        if unread:
            view.say(f"taas: ranks may differ in what cannot be read of torch: {', '.join(unread)}")
        facts = {
            "registered": registered,
            "pull": options.pull,
            "seed": _seed(_tree(text)),
            "path": _search_path(),
            "settings": set_before,
            "apart": apart,
        }
        folder.write(text, found, facts)
        run = Run(
            command(options, folder.path, prepared, _uses_torch(text, found)), environment(folder.path), folder, view
        )
        runs.append(run)
        del runs[:-_KEPT]
        code = run.execute()
        if apart and run.folder:
            for line in sort_private_files(run.folder, apart, run.began):
                view.say(f"taas: {line}")
        if code != 0:
            protected = os.getcwd() if protects(options) else None
            raise failure_of(
                run.verdict or {}, run.world_size, run.failures, _cell_names(shell, folder.cell), protected
            )
        if options.pull:
            pull.take(run.pulled, shell.user_ns, options.pull, found)
    finally:
        folder.remove()
    return CellResult(view.result) if view.result else None


def _tree(text: str) -> ast.Module:
    """The cell's statements. Raises CellUsage that names the line of what is not Python."""
    try:
        tree = ast.parse(text, "<cell>")
        compile(tree, "<cell>", "exec", dont_inherit=True)
        return tree
    except SyntaxError as error:
        line = text.splitlines()[(error.lineno or 1) - 1].strip()
        why = error.msg
        if _IPYTHONS.search(line):
            why = "this is for IPython, and ranks run plain Python: put it into a cell of its own"
        elif _awaits(text):
            why += (
                "; in ranks no event loop runs: put the statements into an async function, "
                "and call asyncio.run() with it"
            )
        raise CellUsage(f"line {error.lineno} of the cell: {line!r}: {why}") from None


def _awaits(text: str) -> bool:
    """Whether the statements are right in a notebook, where they may await outside of functions."""
    try:
        compile(text, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        return True
    except SyntaxError:
        return False


def _say_what_is_unusual(options: CellOptions, view: View) -> None:
    if options.shape and options.shape.taken_for:
        view.say(f"taas: {options.shape.taken_for}")
    if options.protect and not landlock_supported():
        view.say("taas: this kernel has no Landlock: every rank may write to the project's directory")
    elif options.protect and os.getcwd() == "/":
        view.say("taas: the working directory is /, which cannot be kept from ranks: every rank may write there")


def _check_pulled(names: list[str], tree: ast.Module, found: Capture) -> None:
    """Raises CellUsage for names that rank 0 cannot have in the end: after hours of training that would be too late."""
    for name in names:
        if name not in found.values and not may_bind(tree, found.words, name):
            raise CellUsage(
                f"--pull {name}: the cell has no such variable: it neither sets it nor reads one of the notebook's"
            )


def _registered(found: Capture) -> dict[str, dict[str, Any]]:
    """Captured loaders that taas.register was called with, and what else it was given.

    Nothing is registered unless torch is there.
    """
    registration = sys.modules.get("taas.registration")
    return {
        name: registration.asked_for(value)
        for name, value in found.values.items()
        if registration and registration.is_registered(value)
    }


def _uses_torch(text: str, found: Capture) -> bool:
    """Looked up in the text and in what was pickled; a wrong guess costs time and nothing else."""
    return any(word in text or word.encode() in found.data for word in _WITH_TORCH)


def _has_cpus(options: CellOptions) -> bool:
    names = [word.partition("=")[0] for word in options.launcher]
    return bool({"--cpus", "--data-workers", "--data_workers", "--data-hosts", "--data_hosts"} & set(names))


def _seed(tree: ast.Module) -> int | None:
    """The number of the cell's own torch.manual_seed(number): batches are prepared with it."""
    for statement in tree.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("manual_seed") and len(call.args) == 1:
            value = call.args[0]
            return value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else None
    return None


def _search_path() -> list[str]:
    return [place or os.getcwd() for place in sys.path if isinstance(place, str)]


def _cell_names(shell: Any, cell: str) -> dict[str, str]:
    """The notebook's names of files: this cell's, and those of the cells before."""
    counts = getattr(shell.compile, "_filename_map", {})
    own = len(shell.history_manager.input_hist_raw) - 1  # shell.execution_count may be the next cell's already
    return {**{name: f"Cell In[{count}]" for name, count in counts.items()}, cell: f"Cell In[{own}]"}
