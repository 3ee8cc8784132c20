"""Which names a cell reads before it binds them itself: those that it has from earlier cells.

Follows the cell's statements in their order. What one statement reads is taken from its compiled code, where Python has
already decided which names are local to a function and which are global.
"""

from __future__ import annotations

import ast
import dis
import types
from typing import Any
from typing import Iterator

_GLOBAL = {"LOAD_GLOBAL"}
_NAMED = {"LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_NAME"}
_BINDING = {"STORE_NAME", "STORE_GLOBAL"}
_REACHING_GLOBALS = {"exec", "eval", "globals", "vars", "locals", "modules", "__main__"}
"""What mentions one of these may bind any name."""


def globals_of(code: types.CodeType) -> dict[str, int]:
    """The global names that a function's code reads, code inside it included, with the line of the first reading."""
    found: dict[str, int] = {}
    _collect(code, found, top=False)
    return found


def words_of(code: types.CodeType) -> set[str]:
    """Every name and attribute in the code: tells which submodules of a package it may mean."""
    words = set(code.co_names)
    for inner in _inner(code):
        words |= words_of(inner)
    return words


def may_bind(tree: ast.Module, words: set[str], name: str) -> bool:
    """Whether the statements may give the global `name` a value, or functions whose code mentions `words` may. Only
    what can be told from the code is denied."""
    code = _compiled_all(tree)
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return True
    return bool({name, *_REACHING_GLOBALS} & words) or bool(_REACHING_GLOBALS & words_of(code)) or _binds(code, name)


def _binds(code: types.CodeType, name: str, opcodes: frozenset[str] = frozenset(_BINDING)) -> bool:
    steps = dis.get_instructions(code)
    return any(step.opname in opcodes and step.argval == name for step in steps) or any(
        _binds(inner, name, frozenset({"STORE_GLOBAL"})) for inner in _inner(code)
    )


def reads_of(tree: ast.Module) -> dict[str, int]:
    """The names that the statements read before they have certainly bound them, with the line."""
    reads = _Reads()
    reads.block(tree.body, set())
    return reads.found


class _Reads:
    """Walks statements; `found` is what was read from outside."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}

    def block(self, statements: list[ast.stmt], bound: set[str]) -> set[str]:
        """What is certainly bound after these, when `bound` was before."""
        for statement in statements:
            handler = getattr(self, f"_{type(statement).__name__.lower()}", self._simple)
            bound = handler(statement, bound)
        return bound

    def _simple(self, statement: ast.stmt, bound: set[str]) -> set[str]:
        if isinstance(statement, (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.Return)):
            return bound
        return self._run(_compiled(statement), bound)

    def _functiondef(self, node: ast.FunctionDef | ast.ClassDef, bound: set[str]) -> set[str]:
        code = _compiled(node)
        outside: dict[str, int] = {}
        _collect(code, outside, top=True, nested=False)
        inside: dict[str, int] = {}
        for inner in _inner(code):
            _collect(inner, inside, top=False)
        inside.pop(node.name, None)  # it calls itself
        self._note({**inside, **outside}, bound)
        return bound | {node.name}

    _asyncfunctiondef = _classdef = _functiondef

    def _if(self, node: ast.If, bound: set[str]) -> set[str]:
        bound = self._expression(node.test, bound)
        return self.block(node.body, bound) & self.block(node.orelse, bound)

    def _while(self, node: ast.While, bound: set[str]) -> set[str]:
        bound = self._expression(node.test, bound)
        self.block(node.body, bound)
        self.block(node.orelse, bound)
        return bound

    def _for(self, node: ast.For, bound: set[str]) -> set[str]:
        bound = self._expression(node.iter, bound)
        self.block(node.body, self._target(node.target, bound))
        self.block(node.orelse, bound)
        return bound

    _asyncfor = _for

    def _with(self, node: ast.With, bound: set[str]) -> set[str]:
        for item in node.items:
            bound = self._expression(item.context_expr, bound)
            if item.optional_vars is not None:
                bound = self._target(item.optional_vars, bound)
        return self.block(node.body, bound)

    _asyncwith = _with

    def _try(self, node: ast.Try, bound: set[str]) -> set[str]:
        ends = [self.block(node.orelse, self.block(node.body, bound))]
        for handler in node.handlers:
            within = self._expression(handler.type, bound) if handler.type else bound
            end = self.block(handler.body, within | {handler.name} if handler.name else within)
            if not isinstance(handler.body[-1], (ast.Raise, ast.Return, ast.Continue, ast.Break)):
                ends.append(end)
        return self.block(node.finalbody, set.intersection(*ends))

    _trystar = _try

    def _match(self, node: ast.Match, bound: set[str]) -> set[str]:
        bound = self._expression(node.subject, bound)
        for case in node.cases:
            lone = ast.copy_location(
                ast.Match(
                    subject=ast.copy_location(ast.Constant(None), node.subject),
                    cases=[
                        ast.match_case(
                            pattern=case.pattern, guard=case.guard, body=[ast.copy_location(ast.Pass(), node)]
                        )
                    ],
                ),
                node,
            )
            self.block(case.body, self._run(_compiled(lone), bound))
        return bound

    def _expression(self, node: ast.expr, bound: set[str]) -> set[str]:
        return self._run(_compiled(ast.copy_location(ast.Expr(node), node)), bound)

    def _target(self, node: ast.expr, bound: set[str]) -> set[str]:
        value = ast.copy_location(ast.Constant(None), node)
        return self._run(_compiled(ast.copy_location(ast.Assign(targets=[node], value=value), node)), bound)

    def _run(self, code: types.CodeType, bound: set[str]) -> set[str]:
        found: dict[str, int] = {}
        _collect(code, found, top=True)
        self._note(found, bound)
        return bound | {step.argval for step in dis.get_instructions(code) if step.opname in _BINDING}

    def _note(self, found: dict[str, int], bound: set[str]) -> None:
        for name, line in found.items():
            if name not in bound:
                self.found.setdefault(name, line)


def _compiled(statement: ast.stmt) -> types.CodeType:
    return _compiled_all(ast.fix_missing_locations(ast.Module(body=[statement], type_ignores=[])))


def _compiled_all(module: ast.Module) -> types.CodeType:
    return compile(module, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _collect(code: types.CodeType, found: dict[str, int], top: bool, nested: bool = True) -> None:
    """Adds what the code reads. In a class body a name that it binds itself is its own."""
    own = set() if top else {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_NAME"}
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        positions: Any = getattr(step, "positions", None)
        line = (positions.lineno if positions else step.starts_line) or line
        reads = step.opname in _GLOBAL or (step.opname in _NAMED and step.argval not in own)
        if reads and not step.argval.startswith("__"):  # Python's own, such as __name__
            found.setdefault(step.argval, line)
    for inner in _inner(code) if nested else ():
        _collect(inner, found, top=False)


def _inner(code: types.CodeType) -> Iterator[types.CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
