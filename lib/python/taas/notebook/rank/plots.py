"""Matplotlib's backend in ranks: show() sends the figures to the notebook, and so does the cell's end."""

from __future__ import annotations

from typing import Any

from matplotlib import pyplot
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

from . import display


class FigureManager(FigureManagerBase):
    """Of a figure that is seen once it is shown."""

    @classmethod
    def pyplot_show(cls, *_: Any, **__: Any) -> None:
        """Shows all open figures and closes them."""
        _show_all()


class FigureCanvas(FigureCanvasAgg):
    """Drawn in memory."""

    manager_class = FigureManager


def _show_all() -> None:
    for manager in Gcf.get_all_fig_managers():
        display.display(manager.canvas.figure)
    pyplot.close("all")


display.at_end(_show_all)
