"""Which names a cell reads from the notebook, by tables; no kernel."""

import ast

import pytest
from taas.notebook.names import globals_of, reads_of

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
