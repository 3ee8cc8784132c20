"""How programs end, and what they say then, is the same. One run has all: each is one generation, which fails."""

import re

import pytest

from conftest import ENDS, HERE, Machine

PROGRAM = HERE / "program.py"


def normal(text: str) -> list[str]:
    text = re.sub(r"(?m)^(Current thread|Thread) 0x[0-9a-f]+|0x[0-9a-f]{6,}", "ADDRESS", text)
    text = re.sub(r"\n*Extension modules: .*\n", "\n", text)  # what is imported
    return text.splitlines()


class Modes:
    def __init__(self, machine: Machine):
        self._machine = machine
        words = ("--nproc-per-node", 1, "--max-restarts", len(ENDS), "--monitor-interval", 0, PROGRAM, HERE / "ends")
        self.none = machine.launch("--preload", "none", *words)
        self.auto = machine.launch("--preload", "auto", *words)

    def python(self, number: int) -> tuple[str, str, int]:
        return self._machine.python(
            "-u", PROGRAM, HERE / "ends", env={**self._machine.environment, "CASE": str(number)}
        )


@pytest.fixture(scope="module")
def modes(one_machine):
    return Modes(one_machine)


@pytest.mark.gate
def test_every_generation_comes_out_of_the_same_interpreter(modes):
    assert (modes.none.code, modes.auto.code) == (0, 0), modes.none.console + modes.auto.console
    assert modes.auto.preloaded() == [True] * len(ENDS)


CHEAP_AND_TELLING = {"2_raise", "7_signal", "9_at_exit", "9c1_buffer"}


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=pytest.mark.gate) if path.stem in CHEAP_AND_TELLING else number
        for number, path in enumerate(ENDS)
    ],
    ids=[path.stem for path in ENDS],
)
def test_end(modes, number):
    out, err, code = modes.python(number)
    for run in (modes.none, modes.auto):
        assert run.exits()[number] == (number, code)
        assert tuple(map(normal, run.output(generation=number))) == (normal(out), normal(err))
