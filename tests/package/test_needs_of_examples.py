"""docs/examples: each program runs in an environment that its own first lines make out of quickstart's."""

import ast
import base64
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from typing import Callable, Iterator

import pytest

from environments import HANG, SOURCE, Environment, requirements_of

EXAMPLES = SOURCE / "docs/examples"
FULL = bool(os.environ.get("TAAS_FULL"))
PROGRAMS = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.py") if "__main__" in path.read_text())
NOTHING = re.compile(r"^(Quickstart's environment has all that it needs\b|It needs Python alone\.$)", re.MULTILINE)
# What makes a program short. Without it, it is as its first lines show it.
SHORT = {
    "auto_mode.py": "--epochs 1",
    "deepspeed_zero.py": "--steps 2",
    "lightning_digits.py": "--epochs 1",
    "object_store/train.py": "--steps 8",
    "parallelism/resnet50_model_parallel.py": "--repeats 1 --batch-size 2 --image-size 33",
    "parallelism/toy_ddp.py": "--steps 2",
    "project/train.py": "--samples 64 --batch-size 8 --epochs 1",
    "project/train_tf.py": "--samples 64 --batch-size 8 --epochs 1",
}
SLOW = {"deepspeed_zero.py", "project/train_tf.py"}  # compiles its kernel; imports TensorFlow on each rank
FIRST = {"collectives_tour.py", "object_store/train.py"}  # the others of their command lines are for more ranks or machines
MEASURED = {"title": "", "ylabel": "seconds", "bars": [{"label": label, "seconds": [1.0]} for label in ("Model Parallel", "Single GPU")]}
ONE_PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNocFAAAAIkAOGrWWInAAAAAElFTkSuQmCC")


def first_lines(program: str) -> str:
    return ast.get_docstring(ast.parse((EXAMPLES / program).read_text()), clean=False) or ""


def commands_of(program: str) -> list[str]:
    return [line.strip() for line in first_lines(program).splitlines() if line.startswith("    ")]


def requirements(program: str) -> list[str]:
    lines = [line for line in commands_of(program) if line.startswith("pip ")]
    assert len(lines) + len(NOTHING.findall(first_lines(program))) == 1, "what it needs is said in one way"
    return requirements_of(lines[0]) if lines else []


def runs_of(program: str) -> list[list[str]]:
    """Its command lines: the one for the smallest machine, or all of them in the full run."""
    lines = [shlex.split(line, comments=True) for line in commands_of(program) if line.startswith(("python ", "taas-run "))]
    runs = [words for words in lines if any(word.endswith(program.rpartition("/")[2]) for word in words) and words[-1] != "&"]
    return runs if FULL else [runs[0] if program in FIRST else runs[-1]]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Where docs/examples are, as in a clone; programs write into it."""
    shutil.copytree(EXAMPLES, tmp_path / "docs/examples")
    (tmp_path / "model_parallel.json").write_text(json.dumps(MEASURED))  # what plot.py draws
    for place in ("train/cat", "train/dog", "val/cat", "val/dog"):  # what resnet.py learns
        images = tmp_path / "docs/examples/cpp/images" / place
        images.mkdir(parents=True)
        for name in ("0.png", "1.png"):
            (images / name).write_bytes(ONE_PIXEL)
    return tmp_path


@pytest.fixture
def server() -> Iterator[str]:
    """The address of an object server."""
    command = [sys.executable, EXAMPLES / "object_store/object_server.py", "--latency-ms", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def run(environment: Environment, words: list[str], folder: pathlib.Path) -> None:
    done = environment.run(*words, folder=folder, **environment.activated(), OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="",
                           DS_ACCELERATOR="cpu", TF_CPP_MIN_LOG_LEVEL="2")
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("program", [program for program in PROGRAMS if not program.endswith("object_server.py")])
def test_a_program_runs_with_what_its_first_lines_say(program: str, quickstart_environment: Callable[..., Environment],
                                                      folder: pathlib.Path, server: str) -> None:
    if program in SLOW and not FULL:
        pytest.skip("takes minutes: TAAS_FULL=1")
    environment = quickstart_environment(*requirements(program))
    for words in runs_of(program):
        words += shlex.split(SHORT.get(program, ""))
        if program.startswith("object_store/"):
            words += ["--url", server]
        named = any(word.startswith("docs/examples/") for word in words)
        run(environment, words, folder if named else (folder / "docs/examples" / program).parent)


def test_what_is_not_said_is_not_there(quickstart_environment: Callable[..., Environment]) -> None:
    """Otherwise the other tests here could not fail."""
    environment = quickstart_environment("torchvision")
    for module, found in {"torch": 0, "taas": 0, "torchvision": 0, "matplotlib": 1, "lightning": 1, "pytest": 1}.items():
        assert environment.python(f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)").returncode == found, module


def test_the_object_server_needs_python_alone() -> None:
    assert requirements("object_store/object_server.py") == []
    shown = subprocess.run([sys.executable, "-I", "-S", EXAMPLES / "object_store/object_server.py", "--help"], capture_output=True,
                           text=True, timeout=HANG)
    assert shown.returncode == 0 and "--latency-ms" in shown.stdout, shown.stderr


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("cpp/*.cpp")), ids=lambda path: path.name)
def test_programs_of_cpp_say_where_they_are(path: pathlib.Path) -> None:
    """tests/train runs them."""
    lines = path.read_text().splitlines()
    where = "in build/release/bin" if path.stem in ("gpt", "resnet", "scripted") else r", and taas-run finds it by its name"  # a name of users' own
    assert re.fullmatch(rf"// Quickstart has built it ?{where}\. Elsewhere CMakeLists\.txt beside it says how\.", lines[1])
    assert any(re.match(rf"//     taas-run .*\b{path.stem}\b", line) for line in lines[:8])
