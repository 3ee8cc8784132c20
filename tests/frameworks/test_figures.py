"""The figures of docs/parallelism.md are what their script draws."""

import importlib.metadata
import re

import pytest

from conftest import EXAMPLES, need

DOCS = EXAMPLES.parent
PAGE = DOCS / "parallelism.md"


def test_figures_are_drawn_by_their_script(runner):
    need("matplotlib")
    result = runner.python(DOCS / "figures" / "draw_parallelism.py", runner.folder)
    assert result.returncode == 0, result.stderr
    drawn = {path.name: path.read_text() for path in runner.folder.glob("*.svg")}
    kept = {path.name: path.read_text() for path in DOCS.glob("figures/parallelism-*.svg")}
    assert sorted(drawn) == sorted(kept)
    version = importlib.metadata.version("matplotlib")
    if f"Matplotlib v{version}," not in next(iter(kept.values())):
        pytest.skip(f"drawn with another matplotlib than {version}, which draws the same with other bytes")
    assert drawn == kept, "run: python docs/figures/draw_parallelism.py"


def test_the_page_shows_each_figure_and_names_what_there_is():
    text = PAGE.read_text()
    shown = set(re.findall(r"\(figures/(parallelism-[\w-]+\.svg)\)", text))
    assert shown == {path.name for path in DOCS.glob("figures/parallelism-*.svg")} and len(shown) == 6
    commands = {DOCS.parent / command for command in re.findall(r"docs/examples/[\w/]+\.py", text)}
    assert all(command.exists() for command in commands)
    assert set((EXAMPLES / "parallelism").glob("*.py")) <= commands
