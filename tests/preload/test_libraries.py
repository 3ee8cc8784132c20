"""Programs that import some library, most before torch, end and print the same when torch is preloaded.

Each is in libraries/: what it imports beside torch may patch, trace or check what is imported after it. What is not
installed (scripts/requirements-preload.txt) is left out.
"""

import ast
import importlib.util
import re

import pytest

from conftest import HERE

PROGRAMS = sorted((HERE / "libraries").glob("*.py"))
FRESH = {"comet_ml", "ddtrace", "dotenv", "eventlet", "gevent", "newrelic", "pyarrow"}
"""By rule: they have to be imported first, or set variables that nobody can foresee."""
DIFFERENT = {"setproctitle": "the environment of a rank is not behind its arguments"}
ADDRESS, LOGGED = r"0x[0-9a-f]{6,}", r"^([A-Z]\d{4}) \S+ +\d+ "


def missing(program) -> list[str]:
    """What it imports and is not installed."""
    names = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add(str(node.module).partition(".")[0])
    return sorted(name for name in names - {"shop"} if importlib.util.find_spec(name) is None)  # one makes a module


def normal(text: str) -> str:
    """Without addresses, and times and processes in torch's own log."""
    text = re.sub(LOGGED, r"\1 ", re.sub(ADDRESS, "ADDRESS", text), flags=re.M)
    return re.sub(r"^\d+\.\d+s ", "", text, flags=re.M)  # debugpy tells of its first seconds


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem.removeprefix("with_"))
def test_a_program_with_this_library_ends_and_prints_the_same(machine, program, request):
    if names := missing(program):
        pytest.skip(f"not installed: {', '.join(names)}")
    name = program.stem.removeprefix("with_")
    if name in DIFFERENT:
        request.applymarker(pytest.mark.xfail(reason=DIFFERENT[name], strict=True))
    runs = [machine.launch("--preload", mode, "--nproc-per-node", 1, program) for mode in ("none", "torch")]
    assert [run.preloaded() for run in runs] == [[False], [name not in FRESH]], runs[1].console
    assert runs[0].exits() == runs[1].exits() and runs[0].code == runs[1].code, runs[0].console + runs[1].console
    outputs = [[normal(text) for text in run.output()] for run in runs]
    assert outputs[0] == outputs[1]
    assert outputs[0][0] and "ModuleNotFoundError" not in outputs[0][1]
