"""Cells that run on many GPUs: `%load_ext taas`, then `%%taas`, or a cell that begins with `#!g2.8` or `#pragma taas`.

Imported by load_ipython_extension alone: `import taas` does not need IPython. docs/notebooks.md is the users' page.
"""

from __future__ import annotations

from typing import Any


def load(shell: Any) -> None:
    """Adds the magics and the rewriting of cells to an IPython shell; once more does nothing."""
    from .magics import TaasMagics
    from .pragma import as_magic, say_misplaced

    if as_magic not in shell.input_transformers_cleanup:
        shell.register_magics(TaasMagics(shell))
        shell.input_transformers_cleanup.append(as_magic)
        shell.events.register("pre_run_cell", say_misplaced)


def unload(shell: Any) -> None:
    """Cells are ordinary ones again, and `%%taas` is unknown."""
    from .pragma import as_magic, say_misplaced

    if as_magic in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(as_magic)
        shell.events.unregister("pre_run_cell", say_misplaced)
    for kind in ("cell", "line"):
        shell.magics_manager.magics[kind].pop("taas", None)
