"""What a user sees: the real program behind a pseudo terminal, whose screen an emulator keeps."""

import fcntl
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from conftest import TAAS_RUN
from waiting import DEADLINE_SECONDS, wait_until

pyte = pytest.importorskip("pyte", reason="no pyte here: scripts/requirements-test.txt has it")

COLUMNS, ROWS = 80, 40
FOOTER = re.compile(r"taas-run \d+:\d\d \| \d+ of \d+ ranks? up")
DONE = re.compile(r"^taas-run: done in ")


class Terminal:
    """A terminal of its own with a program in its foreground. Nothing scrolls away: the screen is tall enough."""

    def __init__(self, command: list, folder: pathlib.Path, environment: dict):
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.seen = []  # the rows after each piece of output
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def rows(self) -> list:
        """What stands on the screen, without the empty rows below it."""
        rows = [row.rstrip() for row in self.screen.display]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def read(self, seconds: float) -> bool:
        """Takes one piece of output. False: the terminal has been closed by all who wrote to it."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            self.stream.feed(os.read(self.master, 65536))
        except OSError:
            return False
        self.seen.append(self.rows())
        return True

    def wait_for(self, condition, what: str) -> list:
        """Until `condition` of the rows holds: a function, or a text that a row has to contain."""
        holds = condition if callable(condition) else lambda rows: any(condition in row for row in rows)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds(self.rows()):
            open_still = self.read(0.1) or holds(self.rows())
            assert open_still and time.monotonic() < deadline, f"{what}; the screen:\n" + "\n".join(self.rows())
        return self.rows()

    def press(self, keys: str):
        os.write(self.master, keys.encode())

    def finish(self) -> list:
        """The screen when the program has ended, and its exit code was 0."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.read(0.1):
            assert time.monotonic() < deadline, "the program has not ended; the screen:\n" + "\n".join(self.rows())
            if self.process.poll() is not None and not select.select([self.master], [], [], 0)[0]:
                break
        assert self.process.wait(DEADLINE_SECONDS) == 0, "\n".join(self.rows())
        return self.rows()

    def showed_footer(self) -> bool:
        return any(FOOTER.search(row) for rows in self.seen for row in rows)

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(launcher):
    """terminal(word, …): runs a command in a terminal, in the launcher's folder."""
    opened = []
    launcher.environment |= {
        "TERM": "xterm-256color",
        "PYTHONUNBUFFERED": "1",
        "LESS": "",
        "PS1": "$ ",
        "HISTFILE": "",
        "BASH_SILENCE_DEPRECATION_WARNING": "1",
        "PYTHON_BASIC_REPL": "1",
    }
    for name in ("CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TMUX", "LESSOPEN", "PYTHONBREAKPOINT"):
        launcher.environment.pop(name, None)

    def run(*command, **environment) -> Terminal:
        opened.append(Terminal(list(command), launcher.folder, launcher.environment | environment))
        return opened[-1]

    yield run
    for each in opened:
        each.end()


class Gate:
    """Where a rank waits until the test lets it through."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        os.mkfifo(path)

    def rank_waits(self) -> str:
        return f"open({str(self.path)!r}).read()\n"

    def open(self):
        with open(self.path, "w"):
            pass


@pytest.fixture
def gate(launcher):
    return Gate(launcher.folder / "gate")


LINES = ["hello from 0", *(f"val 0.{i:02}" for i in range(12))]
PRINT_LINES = "print('hello from', 0)\nfor i in range(12): print(f'val 0.{i:02}')\n"


def words(*command) -> str:
    return shlex.join(map(str, command))


def need(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"no {program} here: ./scripts/test installs it")
    return path


@pytest.mark.gate
def test_a_terminal_shows_lines_above_a_row_about_the_run(launcher, terminal, gate):
    screen = terminal(TAAS_RUN, launcher.python(PRINT_LINES + gate.rank_waits()))
    rows = screen.wait_for(lambda rows: LINES[-1] in rows and FOOTER.search(rows[-1]), "lines and the footer are there")
    assert rows[:-1] == LINES
    gate.open()
    rows = screen.finish()
    assert rows[:-1] == LINES and DONE.search(rows[-1])


@pytest.mark.gate
def test_tee_gets_the_lines_and_nothing_is_drawn_over_them(launcher, terminal):
    script = launcher.python(PRINT_LINES)
    screen = terminal("sh", "-c", f"{words(TAAS_RUN, script)} | tee log")
    rows = screen.finish()
    assert sorted(row for row in rows if not DONE.search(row)) == sorted(LINES)
    assert not screen.showed_footer()
    assert (launcher.folder / "log").read_text().splitlines() == LINES


@pytest.mark.parametrize(
    "streams",
    [
        "2>&1 | tee log",
        "> log",
        pytest.param("2> log", marks=pytest.mark.gate),
        "2> log | tee out",
        "< /dev/null 2>&1 | cat",
    ],
)
def test_nothing_is_drawn_unless_both_streams_are_the_terminal(launcher, terminal, streams):
    script = launcher.python(PRINT_LINES)
    screen = terminal("sh", "-c", f"{words(TAAS_RUN, script)} {streams}")
    rows = screen.finish()
    assert [row for row in rows if not DONE.search(row)] in (LINES, [])
    assert not screen.showed_footer()
    written = "".join(path.read_text() for path in launcher.folder.glob("log"))
    assert "\x1b[J" not in written and "\r" not in written


@pytest.mark.parametrize("both", ["", "2>&1"])
def test_less_has_the_screen(launcher, terminal, gate, both):
    script = launcher.python("for i in range(100): print('line', i)\n" + gate.rank_waits())
    screen = terminal("sh", "-c", f"{words(TAAS_RUN, script)} {both} | {need('less')}")
    rows = screen.wait_for(lambda rows: rows and rows[-1] == ":", "less shows its first page")
    assert rows == [*(f"line {i}" for i in range(ROWS - 1)), ":"]
    gate.open()
    screen.press("G")
    screen.wait_for("line 99", "less is at the end")
    screen.press("q")
    screen.finish()
    assert not screen.showed_footer()


def test_tmux_shows_what_a_terminal_shows(launcher, terminal, gate):
    tmux = [need("tmux"), "-S", str(launcher.folder / "tmux"), "-f", "/dev/null"]
    run = words(TAAS_RUN, launcher.python(PRINT_LINES + gate.rank_waits()))
    environment = launcher.environment | {"LC_ALL": "C.UTF-8"}

    def call(*arguments) -> str:
        return subprocess.run(
            [*tmux, *map(str, arguments)],
            cwd=launcher.folder,
            env=environment,
            text=True,
            check=True,
            timeout=DEADLINE_SECONDS,
            stdout=subprocess.PIPE,
        ).stdout

    def rows() -> list:
        return [row for row in call("capture-pane", "-p").splitlines() if row]

    call("new-session", "-d", "-x", COLUMNS, "-y", ROWS, f"{run}; read end")
    try:
        wait_until(lambda: LINES[-1] in rows() and FOOTER.search(rows()[-1]), "lines and the footer are there")
        assert rows()[:-1] == LINES
        gate.open()
        wait_until(lambda: rows() and DONE.search(rows()[-1]), "the run is done")
        assert rows()[:-1] == LINES
    finally:
        call("kill-server")


@pytest.mark.gate
def test_logs_of_ci_have_no_drawings(launcher, terminal):
    screen = terminal(TAAS_RUN, launcher.python(PRINT_LINES), CI="true")
    rows = screen.finish()
    assert rows[:-1] == LINES and DONE.search(rows[-1])
    assert not screen.showed_footer()


def alone(launcher, terminal, script: str) -> list:
    """What stands on the screen when the program has run without taas-run."""
    return terminal(sys.executable, script).finish()


NESTED_BARS = """
from tqdm import tqdm
bars = [tqdm(total=20, position=i, desc=f"bar {i}", ncols=60,
             bar_format="{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}", mininterval=0) for i in range(8)]
for step in range(20):
    for bar in bars:
        bar.update()
for bar in bars:
    bar.close()
"""


@pytest.mark.gate
def test_eight_bars_of_one_rank_stand_where_they_stand_alone(launcher, terminal):
    pytest.importorskip("tqdm", reason="no tqdm here: scripts/requirements-test.txt has it")
    script = launcher.python(NESTED_BARS)
    expected = alone(launcher, terminal, script)
    assert len(expected) == 8 and all(row.startswith(f"bar {i}: 100%|") for i, row in enumerate(expected))
    rows = terminal(TAAS_RUN, script).finish()
    assert [row for row in rows if not DONE.search(row)] == expected


def test_bars_of_eight_ranks_end_as_a_line_each(launcher, terminal):
    pytest.importorskip("tqdm", reason="no tqdm here: scripts/requirements-test.txt has it")
    script = launcher.python(
        "import os\nfrom tqdm import tqdm\n"
        "bar_format = '{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}'\n"
        "for step in tqdm(range(20), desc=f'rank {os.environ[\"RANK\"]}', ncols=60, bar_format=bar_format): pass\n"
    )
    rows = terminal(TAAS_RUN, "--nproc-per-node", 8, "-t", 3, script).finish()
    assert DONE.search(rows[-1])
    bars = sorted(row for row in rows[:-1] if "| 20/20" in row)
    assert [row.split("%|")[0] for row in bars] == [f"[{i}] rank {i}: 100" for i in range(8)]
    assert all(re.match(r"^\[\d\] rank \d: +\d+%\|.*\| \d+/20$", row) for row in rows[:-1]), rows


def no_footer_below(screen: Terminal, question: str):
    """That nothing was drawn below a question while it stood there without its answer."""
    for rows in screen.seen:
        for above, below in zip(rows, rows[1:]):
            assert above != question or not FOOTER.search(below), "\n".join(rows)


def test_a_debugger_has_the_row_that_it_asks_on(launcher, terminal):
    screen = terminal(TAAS_RUN, launcher.python("x = 40\nbreakpoint()\nprint('after', x)\n"))
    for command, answer in (("p x + 2", "42"), ("p x + 3", "43"), ("p x + 4", "44")):
        screen.wait_for(lambda rows: rows and rows[-1] == "(Pdb)", "the debugger asks")
        assert (screen.screen.cursor.y, screen.screen.cursor.x) == (len(screen.rows()) - 1, len("(Pdb) "))
        screen.press(command + "\n")
        screen.wait_for(lambda rows: answer in rows, "the debugger answers")
    screen.wait_for(lambda rows: rows and rows[-1] == "(Pdb)", "the debugger asks")
    screen.press("c\n")
    rows = screen.finish()
    assert rows[-9:-1] == ["(Pdb) p x + 2", "42", "(Pdb) p x + 3", "43", "(Pdb) p x + 4", "44", "(Pdb) c", "after 40"]
    no_footer_below(screen, "(Pdb)")


@pytest.mark.gate
def test_input_is_typed_behind_its_question_and_bars_come_after_the_answer(launcher, terminal, gate):
    screen = terminal(
        TAAS_RUN,
        launcher.python(
            "import sys\nname = input('name: ')\nfor i in range(5): sys.stderr.write(f'\\r{i + 1} of 5 for {name}')\n"
            + gate.rank_waits()
            + "print()\nprint('bye', name)\n"
        ),
    )
    screen.wait_for(lambda rows: rows and rows[-1] == "name:", "the question is there")
    screen.press("bob\n")
    screen.wait_for(
        lambda rows: any(FOOTER.search(row) for row in rows) and "5 of 5 for bob" in rows, "the bar is drawn"
    )
    gate.open()
    rows = screen.finish()
    assert [row for row in rows if row][0] == "name: bob" and "bye bob" in rows
    no_footer_below(screen, "name:")


def test_dots_on_one_line_stay_on_one_line(launcher, terminal, gate):
    """Each is shown when it comes: the gate opens for the next one only then."""
    script = launcher.python(
        "print('load', end='', flush=True)\n"
        + gate.rank_waits()
        + "print('.', end='', flush=True)\n"
        + gate.rank_waits()
        + "print(' ok')\n"
    )
    screen = terminal(TAAS_RUN, script)
    screen.wait_for(lambda rows: rows == ["load"], "the word stands alone")
    gate.open()
    screen.wait_for(lambda rows: rows == ["load."], "the dot follows it")
    gate.open()
    rows = screen.finish()
    assert rows[0] == "load. ok" and DONE.search(rows[1])


def test_a_rank_that_cannot_read_the_terminal_hides_no_footer(launcher, terminal, gate):
    script = launcher.python("print('working', end='', flush=True)\n" + gate.rank_waits())
    screen = terminal("sh", "-c", words(TAAS_RUN, script) + " < /dev/null")
    screen.wait_for(
        lambda rows: len(rows) == 2 and rows[0] == "working" and FOOTER.search(rows[1]), "the footer stands below it"
    )
    gate.open()
    screen.finish()


@pytest.fixture
def shell(terminal):
    """An interactive shell with job control."""
    screen = terminal(need("bash"), "--norc", "--noprofile", "-i")
    screen.wait_for(lambda rows: rows and rows[-1] == "$", "the shell is ready")
    return screen


def printed(rows: list) -> list:
    """What ranks printed, be it behind a prompt of the shell."""
    return [text for row in rows if (text := row.removeprefix("$ ")) in LINES]


@pytest.mark.gate
def test_in_the_background_nothing_is_drawn_until_it_comes_to_the_front(launcher, shell, gate):
    script = launcher.python(PRINT_LINES + gate.rank_waits())
    shell.press(f"clear; {words(TAAS_RUN, script)} &\n")
    shell.wait_for(LINES[-1], "the lines are there")
    shell.press("echo the shell is $((40 + 2))\n")
    shell.wait_for("the shell is 42", "the shell goes on")
    assert not shell.showed_footer()
    shell.press("fg\n")
    shell.wait_for(lambda rows: rows and FOOTER.search(rows[-1]), "the footer comes with it")
    gate.open()
    rows = shell.wait_for(lambda rows: any(map(DONE.search, rows)) and rows[-1] == "$", "the shell is back")
    assert printed(rows) == LINES and "the shell is 42" in rows
    shell.press("exit\n")


def test_a_run_that_is_put_into_the_background_leaves_the_shell_alone(launcher, shell, gate):
    script = launcher.python(gate.rank_waits() + PRINT_LINES + gate.rank_waits())
    shell.press(f"clear; {words(TAAS_RUN, script)}\n")
    shell.wait_for(lambda rows: rows and FOOTER.search(rows[-1]), "the footer is there")
    shell.press("\x1a")
    shell.wait_for("Stopped", "the shell is back")
    gate.open()
    shell.wait_for(LINES[-1], "the ranks go on")
    shell.press("echo the shell is $((40 + 2))\n")
    rows = shell.wait_for("the shell is 42", "the shell goes on")
    assert any("Stopped" in row for row in rows) and printed(rows) == LINES
    assert not any(FOOTER.search(row) for row in rows[rows.index(LINES[-1]) :])
    shell.press("fg\n")
    gate.open()
    shell.wait_for(lambda rows: any(map(DONE.search, rows)) and rows[-1] == "$", "the shell is back")
    shell.press("exit\n")
