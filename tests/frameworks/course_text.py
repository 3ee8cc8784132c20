"""Programs out of the text of a course on distributed training, which stands in the folder `course` as its readers see it."""

import html
import pathlib
import re
import textwrap

FOLDER = pathlib.Path(__file__).parent / "course"


def programs(name: str) -> list[str]:
    """The blocks of code in a page, in their order; only their margins and HTML's entities are taken out."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<pre><code>\n(.*?)</code>|^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [without_margin(html.unescape(listed) if listed else fenced) for listed, fenced in blocks]


def without_margin(code: str) -> str:
    """In some blocks the first lines, imports, have another margin than the rest."""
    imports, blank, rest = code.partition("\n    \n")
    return textwrap.dedent(imports) + ("\n\n" + textwrap.dedent(rest) if blank else "")
