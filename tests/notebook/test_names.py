"""Which names a cell reads from the notebook, by tables; no kernel."""

import ast

import pytest
from taas.notebook.variables.names import globals_of, may_bind, reads_of

CASES = {
    "a": {"a"},
    "a = 1\na": set(),
    "a\na = 1": {"a"},
    "a += 1": {"a"},
    "print(a.b.c)": {"print", "a"},
    "import os\nos.path": set(),
    "from x import a as b\nb\na": {"a"},
    "def f(n):\n    return n + g + f(n)\nf(1)": {"g"},
    "class A(B):\n    x = 1\n    y = x + z\n    def m(self): return w": {"B", "z", "w"},
    "class A(A): pass": {"A"},
    "for i in items:\n    i\n": {"items"},
    "for i in items: last = i\nlast": {"items", "last"},
    "with open(p) as f:\n    f.read()": {"open", "p"},
    "if a:\n    b = 1\nelse:\n    b = 2\nb": {"a"},
    "if a:\n    b = 1\nb": {"a", "b"},
    "try:\n    import t\nexcept ImportError:\n    t = None\nt": {"ImportError"},
    "try:\n    b = 1\nexcept E:\n    pass\nb": {"E", "b"},
    "[x for x in xs if x > y]": {"xs", "y"},
    "f = lambda q: q + r": {"r"},
    "(n := 3)\nn": set(),
    "x[i] = 1": {"x", "i"},
    "del a": {"a"},
    "while a:\n    break": {"a"},
    "match v:\n    case [h, *t]:\n        h, t, u": {"v", "u"},
    "async def f():\n    await g()": {"g"},
    "def f():\n    global a\n    a = 1\n": set(),
    "def f(x: T = d) -> R: pass": {"T", "d", "R"},
    "@wrap\ndef f(): pass": {"wrap"},
    "f'{a!r:>{w}}'": {"a", "w"},
}


@pytest.mark.parametrize("text", CASES)
def test_reads(text):
    assert set(reads_of(ast.parse(text))) == CASES[text]


def test_a_reading_has_its_line():
    assert reads_of(ast.parse("b = 1\n\nprint(b,\n      a)")) == {"print": 3, "a": 4}


def test_a_function_reads_what_its_inner_functions_read():
    def outer():
        def inner():
            return pytest, local

        local = 1
        return inner

    assert set(globals_of(outer.__code__)) == {"pytest"}


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        "import a.b as x",
        "from a import x",
        "from a import *",
        "def x(): pass",
        "class x: pass",
        "for x in y: pass",
        "with a as x: pass",
        "(x := 1)",
        "[x := n for n in y]",
        "a, (*x, b) = c",
        "def f():\n    global x\n    x = 1",
        "class A:\n    def f(self):\n        global x\n        x = 1",
        "if a:\n    x: int = 1",
        "x += 1",
        "globals()['x'] = 1",
        "exec(a)",
        "import __main__\n__main__.x = 1",
        "def f():\n    sys.modules[a].x = 1",
        "match a:\n    case [x]: pass",
    ],
)
def test_what_may_bind_a_name(text):
    assert may_bind(ast.parse(text), set(), "x")


@pytest.mark.parametrize(
    "text",
    [
        "y = 1",
        "x",
        "a.x = 1",
        "def f():\n    x = 1",
        "class A:\n    x = 1",
        "def f(x): pass",
        "lambda x: x",
        "[x for x in y]",
        "f(x=1)",
    ],
)
def test_what_does_not(text):
    assert not may_bind(ast.parse(text), set(), "x")
    assert may_bind(ast.parse(text), {"x"}, "x"), "what the cell calls may do it"
    assert may_bind(ast.parse(text), {"globals"}, "x")
