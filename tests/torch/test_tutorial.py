"""docs/tutorial.md as somebody follows it: its program, its commands in their order, and what it says that they print."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import pytest

TAAS_RUN = os.environ["TAAS_RUN"]
PAGE = pathlib.Path(__file__).parents[2] / "docs/tutorial.md"
DEADLINE_SECONDS = 120
SESSION = f"of-test-{os.getpid()}"  # where the page has the user's default one, which is not ended here
VARYING = [(r"\d{8}-\d{6}-[0-9a-f]{6}", "RUN"), (r"\bpid \d+", "pid N"), (r"\b\d\d:\d\d\b", "HH:MM"), (r"loss \d+\.\d+", "loss N"),
           (r"\b\d+(\.\d+)? (s|ms|min|MiB|GiB)\b", r"N \2"), (r"(N min )?N s\b", "N s"), (r"; --slurm submits them as a job", ""),
           (r"/home/u/", ""), (r" +", " ")]


def blocks_of(page) -> list:
    """(command, the lines below it) in the order of the page."""
    found = []
    for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.S | re.M):
        for line in text.splitlines() if not language else []:
            if line.startswith("$ "):
                found.append((line[2:].partition("#")[0].strip(), []))
            else:
                found[-1][1].append(line)
    return found


class Followed:
    """Somebody's folder, with the program in it."""

    def __init__(self, folder):
        page = PAGE.read_text()
        self.folder, self.blocks = folder, blocks_of(page)
        (folder / "train.py").write_text(re.search(r"^```python\n(.*?)^```", page, re.S | re.M)[1])
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "TAAS_", "PET_"))}
        self.environment |= {"CI": "", "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}

    def command(self, text: str) -> list:
        words = shlex.split(text)
        assert words[0] == "taas-run"
        return [TAAS_RUN, *words[1:]]

    def run(self, text: str) -> str:
        """All that it prints; what stderr has comes first."""
        done = subprocess.run(self.command(text), cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=DEADLINE_SECONDS)
        return done.stderr + done.stdout

    def same(self, text: str) -> str:
        for old, new in [(f"{self.folder}/", ""), (TAAS_RUN, "taas-run"), (SESSION, "default")]:
            text = text.replace(old, new)
        for pattern, new in VARYING:
            text = re.sub(pattern, new, text)
        return text.strip()

    def check(self, expected: list, printed: str):
        """Each line of the page is printed; it may end in an ellipsis, and one alone stands for any lines."""
        lines = [self.same(line) for line in printed.splitlines()]
        for line in expected:
            wanted = self.same(line)
            if wanted.endswith("…"):
                assert any(seen.startswith(wanted[:-1].strip()) for seen in lines), f"{line!r} is not in\n{printed}"
            else:
                assert wanted in lines, f"{line!r} is not in\n{printed}"


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    return Followed(tmp_path_factory.mktemp("u"))


def follow(followed, *beginnings):
    """Runs the commands of the page that begin so, in its order, and compares what they print."""
    chosen = [(command, lines) for command, lines in followed.blocks if command.startswith(beginnings)]
    assert chosen, f"the page has no {beginnings}"
    for command, lines in chosen:
        followed.check(lines, followed.run(command))


def test_what_is_run_and_what_fails_and_what_is_known_of_it(followed):
    follow(followed, "taas-run --gpus 4 train.py --lr 0.01")  # with --fail, too
    followed.run("taas-run --gpus 4 train.py --lr 0.5")
    follow(followed, "taas-run runs", "taas-run diff")
    assert "ValueError: sample 17 has no label" in followed.run("taas-run show 2")
    assert "step 59" in followed.run("taas-run logs 2 -r 1")
    assert "done in" in followed.run("taas-run rerun 3")


def test_a_hang_is_looked_at(followed):
    """By its name, since other tests have runs at the same time."""
    text, = re.findall(r"`(taas-run [^`]*--fail hang)`", PAGE.read_text())
    (expected,) = [lines for command, lines in followed.blocks if command == "taas-run look"]
    latest = followed.folder / "taas-runs/latest"
    before = latest.resolve().name
    process = subprocess.Popen(followed.command(text), cwd=followed.folder, env=followed.environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + DEADLINE_SECONDS
        printed = ""
        while "sleeps" not in printed or "ranks 0-1,3 in backward" not in printed:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < until, printed
            name = latest.resolve().name
            printed = followed.run(f"taas-run look {name}") if name != before else ""
        followed.check(expected, printed)
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_SECONDS)


def test_again_from_a_session(followed):
    (expected,) = [lines for command, lines in followed.blocks if command == "taas-run up"]
    followed.check(expected, followed.run(f"taas-run up --name {SESSION}"))
    try:
        assert "done in" in followed.run(f"taas-run --in {SESSION} --gpus 4 train.py --lr 0.2")
    finally:
        ended = followed.run(f"taas-run down {SESSION}")
    assert ended == f"taas-run: session {SESSION} has been ended\n"


def test_every_command_of_the_page_is_followed(followed):
    """A new one needs its place above."""
    assert [command.split(" --")[0] for command, _ in followed.blocks] == [
        "taas-run", "taas-run", "taas-run runs", "taas-run show 2", "taas-run logs 2 -r 1", "taas-run diff 1 3", "taas-run rerun 3",
        "taas-run look", "taas-run up", "taas-run", "taas-run down"]
