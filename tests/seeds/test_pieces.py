"""The pieces are the documents' own text, and README.md says of each of them, and of each promise, what runs it."""

import ast
import html
import pathlib
import re

import pytest

import pieces

TESTS = pathlib.Path(__file__).parents[1]
README = (pieces.HERE / "README.md").read_text()
OPEN = re.compile(r"not (yet|run): \S.+")


def rows() -> list[list[str]]:
    lines = [line for line in README.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "what"]


def named_tests() -> list[str]:
    return sorted({name for row in rows() for name in re.findall(r"`(tests/[^`]+::[^`]+)`", row[-1])})


def stands_in(block: str, document: str) -> bool:
    """Whether the lines of a block follow each other in a document, all moved to the right equally."""
    wanted, lines = block.rstrip().splitlines(), document.splitlines()
    for start in range(len(lines) - len(wanted) + 1):
        margin = lines[start][:len(lines[start]) - len(wanted[0])]
        if not margin.strip() and all(line == margin + text or line.strip() == text.strip() == ""
                                      for line, text in zip(lines[start:], wanted)):
            return True
    return False


@pytest.mark.skipif(not pieces.ORIGINALS.exists(), reason="the whole documents do not lie beside this checkout")
@pytest.mark.parametrize("name", pieces.names())
def test_a_piece_is_the_documents_own_text(name):
    numbers = pieces.DOCUMENTS[name.partition("/")[0]]
    texts = [re.sub(r"^<pre><code>$|</code>.*$", "", html.unescape(path.read_text()), flags=re.MULTILINE)
             for number in numbers for path in pieces.ORIGINALS.glob(f"{number}*")]
    missing = [block for block in pieces.blocks(name) if not any(stands_in(block, text) for text in texts)]
    assert texts and not missing


@pytest.mark.parametrize("name", [name for name in pieces.names() if name.endswith(".py")])
def test_a_piece_of_python_is_whole(name):
    ast.parse(pieces.piece(name))


def test_the_table_has_every_piece():
    assert [name for name in pieces.names() if f"({name})" not in README] == []


def test_every_row_names_its_test_or_says_why_there_is_none():
    assert len(rows()) > 60
    assert [row for row in rows() if len(row) != 2 or not (OPEN.fullmatch(row[1]) or "::" in row[1])] == []


@pytest.mark.parametrize("name", named_tests())
def test_a_test_that_the_table_names_exists(name):
    path, _, test = name.partition("::")
    text = (TESTS.parent / path).read_text()
    if path.endswith(".py"):
        functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        assert test in functions
    else:
        assert f'"{test}"' in text
