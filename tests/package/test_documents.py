"""Completions in real shells, and the manual page."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from environments import HANG

TAAS_RUN = os.environ["TAAS_RUN"]
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source {file}"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D; source {file}"),
}
# Each completes in one way only.
LINES = [
    ("--nproc", "--nproc-per-node"),
    ("--color al", "--color always"),
    ("--color=ne", "--color=never"),
    ("-t", "-t"),
    ("--protect dat", "--protect dataset"),
    ("--gpus 2 prog", "--gpus 2 program.py"),
    ("--log_d", "--log-dir"),
    ("-q progr", "-q program.py"),
    ("program.py data", "program.py dataset"),
    ("trai", "train"),
]


@pytest.fixture
def completions(tmp_path: pathlib.Path):
    def written(shell: str) -> pathlib.Path:
        file = tmp_path / f"taas-run.{shell}"
        file.write_bytes(
            subprocess.run(
                [TAAS_RUN, "--print-completion", shell], stdout=subprocess.PIPE, check=True, timeout=HANG
            ).stdout
        )
        return file

    return written


class Shell:
    """A shell on a terminal that is typed into. It answers through a pipe: what a terminal shows is redrawn at will."""

    def __init__(self, command: list[str], folder: pathlib.Path) -> None:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": str(folder)})
        os.mkfifo(folder / "answers")
        self._answers = os.open(folder / "answers", os.O_RDWR)
        self._shown = b""

    def ask(self, keys: str) -> str:
        """Types keys that end in a command which writes a line into the pipe `answers`; returns the line."""
        os.write(self._terminal, keys.encode())
        deadline = time.monotonic() + HANG
        while True:
            readable, _, _ = select.select([self._terminal, self._answers], [], [], max(0, deadline - time.monotonic()))
            assert readable, f"no answer to {keys!r}; the terminal shows {self._shown!r}"
            if self._answers in readable:
                return os.read(self._answers, 4096).decode()
            self._shown += os.read(self._terminal, 65536)

    def close(self) -> None:
        os.close(self._answers)
        os.close(self._terminal)  # it gets SIGHUP
        os.waitpid(self._pid, 0)


@pytest.mark.parametrize("shell", [pytest.param("bash", marks=pytest.mark.gate), "zsh"])
def test_a_shell_completes(shell: str, completions, tmp_path: pathlib.Path) -> None:
    command, preparation = SHELLS[shell]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {shell} here")
    file = completions(shell)
    folder = tmp_path / "folder"
    (folder / "dataset").mkdir(parents=True)
    (folder / "program.py").touch()
    terminal = Shell(command, folder)
    assert terminal.ask(preparation.format(file=file) + "; echo ready >answers\n") == "ready\n"
    for typed, completed in LINES:
        # ^A and ^E: the line is echoed instead of executed.
        told = terminal.ask(f"taas-run {typed}\t\x01echo \x05 >answers\n")
        assert told.strip().removesuffix("/") == f"taas-run {completed}"
    terminal.close()


def test_fish_completes(completions) -> None:
    if shutil.which("fish") is None:
        pytest.skip("no fish here")
    file = completions("fish")

    def offered(line: str) -> list[str]:
        """What begins with the last word. From 4.0 on fish also offers what merely has its letters in that order."""
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {file}; complete -C '{line}'"],
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG,
        )
        entries = [entry.split("\t")[0] for entry in done.stdout.splitlines()]
        return [entry for entry in entries if entry.startswith(line.rpartition(" ")[2])]

    assert offered("taas-run --nproc") == ["--nproc-per-node"]
    assert sorted(offered("taas-run --color ")) == ["always", "auto", "never"]
    assert offered("taas-run --gpus 2 --colo") == ["--color"]
    assert "--color" not in offered("taas-run script.py --colo")
    assert "train" in offered("taas-run trai")


@pytest.mark.gate
def test_the_manual_page_is_readable() -> None:
    page = subprocess.run(
        [TAAS_RUN, "--print-man-page"], capture_output=True, text=True, check=True, timeout=HANG
    ).stdout
    readers = {"mandoc": ["mandoc", "-W", "error,stop"], "man": ["man", "-E", "utf8", "--warnings", "-l", "-"]}
    found = [command for name, command in readers.items() if shutil.which(name)]
    for command in found:
        shown = subprocess.run(
            command,
            input=page,
            capture_output=True,
            text=True,
            timeout=HANG,
            env={"PATH": os.environ["PATH"], "MANWIDTH": "100", "LC_ALL": "C.UTF-8"},
        )
        assert shown.returncode == 0 and shown.stderr == "", shown.stderr
        plain = re.sub(".\b", "", shown.stdout)
        assert "--nproc-per-node N|auto|gpu|cpu" in plain and "EXIT STATUS" in plain, plain
    if not found:
        pytest.skip("neither mandoc nor man here")


@pytest.mark.gate
def test_the_page_of_flags_is_that_of_the_parser() -> None:
    printed = subprocess.run(
        [TAAS_RUN, "--print-flags-page"], capture_output=True, text=True, check=True, timeout=HANG
    ).stdout
    kept = pathlib.Path(__file__).parents[2] / "docs" / "flags.md"
    assert kept.read_text() == printed, "run: build/release/bin/taas-run --print-flags-page > docs/flags.md"
