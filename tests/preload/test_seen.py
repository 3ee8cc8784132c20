"""What scripts see of their interpreter is the same under Python, without and with a preloaded interpreter."""

import re

import pytest

from conftest import HERE, SEEN, Machine

PROGRAM = HERE / "program.py"
WORDS = [str(HERE / "seen"), "one", "two words", ""]
NAMES = [path.stem for path in SEEN]


def normal(text: str) -> list[str]:
    """Without addresses and what is drawn at random, which differ from run to run."""
    return [re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", line) for line in text.splitlines() if not line.startswith("UNIQUE")]


class Modes:
    """Each script is one rank of two runs, and one process of Python's own that has the environment of that rank."""

    def __init__(self, machine: Machine):
        self._machine = machine
        ranks = ("--nproc-per-node", len(SEEN), PROGRAM, *WORDS)
        self.none = machine.launch("--preload", "none", *ranks)
        self.auto = machine.launch("--preload", "auto", *ranks)
        script = machine.folder / "dump.py"
        script.write_text(
            "import os, sys\nsys.stdout.buffer.write(b'\\0'.join(b'='.join(item) for item in os.environb.items()))\n"
        )
        dump = machine.launch("--preload", "none", "--nproc-per-node", len(SEEN), script)
        self._environments = [
            dict(entry.split("=", 1) for entry in dump.output(rank)[0].split("\0") if entry)
            for rank in range(len(SEEN))
        ]

    def python(self, number: int) -> tuple[str, str, int]:
        return self._machine.python("-u", PROGRAM, *WORDS, env=self._environments[number])


@pytest.fixture(scope="module")
def modes(one_machine):
    return Modes(one_machine)


def test_runs_end_well_and_ranks_are_preloaded(modes):
    assert (modes.none.code, modes.auto.code) == (0, 0), modes.none.console + modes.auto.console
    assert modes.none.preloaded() == [False] * len(SEEN)
    assert modes.auto.preloaded() == [True] * len(SEEN)


@pytest.mark.parametrize("number", range(len(SEEN)), ids=NAMES)
def test_seen(modes, number):
    out, err, code = modes.python(number)
    expected = normal(out), normal(err)
    assert code == 0 and out, err
    assert tuple(map(normal, modes.none.output(number))) == expected
    assert tuple(map(normal, modes.auto.output(number))) == expected


@pytest.mark.gate
def test_what_is_drawn_at_random_differs_between_ranks(machine):
    script = machine.folder / "drawn.py"
    script.write_text(
        "import multiprocessing, numpy, random, secrets, tempfile, torch, uuid\n"
        "print(random.random())\nprint(secrets.token_hex())\nprint(uuid.uuid4())\n"
        "print(next(tempfile._get_candidate_names()))\nprint(numpy.random.random())\n"
        "print(numpy.random.default_rng().random())\nprint(torch.initial_seed())\nprint(torch.rand(2))\n"
        "print(bytes(multiprocessing.current_process().authkey))\n"
    )
    run = machine.launch("--preload", "torch", "--nproc-per-node", 3, script)
    assert run.code == 0 and run.preloaded() == [True] * 3, run.console
    for drawn in zip(*(run.output(rank)[0].splitlines() for rank in range(3)), strict=True):
        assert len(set(drawn)) == 3, drawn


NUMPYS = """
import numpy
rng, legacy, fixed = numpy.random.default_rng(), numpy.random.RandomState(), numpy.random.default_rng(7)
children = numpy.random.default_rng().spawn(2)
"""


@pytest.mark.gate
def test_numpys_generators_of_modules_are_each_ranks_own(machine):
    (machine.folder / "heavy.py").write_text(NUMPYS)
    script = machine.folder / "drawn.py"
    script.write_text(
        "from heavy import *\nprint(rng.random())\nprint(legacy.random_sample())\nprint(children[1].random())\n"
        "print(rng.spawn(1)[0].random())\nprint(fixed.random())\n"
    )
    run = machine.launch("--preload", "heavy", "--nproc-per-node", 3, script)
    assert run.code == 0 and run.preloaded() == [True] * 3, run.console
    *drawn, fixed = (set(lines) for lines in zip(*(run.output(rank)[0].splitlines() for rank in range(3)), strict=True))
    assert [len(values) for values in drawn] == [3, 3, 3, 3] and len(fixed) == 1


@pytest.mark.parametrize(
    "more",
    [
        "drawn = rng.random()",
        "drawn = numpy.random.default_rng().random()",
        "drawn = numpy.random.SeedSequence().entropy",
    ],
)
def test_what_a_module_has_drawn_from_numpy_keeps_ranks_apart(machine, more):
    (machine.folder / "heavy.py").write_text(NUMPYS + more)
    script = machine.folder / "drawn.py"
    script.write_text("import heavy\nprint(heavy.drawn)\n")
    run = machine.launch("--preload", "heavy", "--nproc-per-node", 2, script)
    assert run.code == 0 and "heavy draws at random when it is imported" in run.console
    assert run.output(0) != run.output(1)
