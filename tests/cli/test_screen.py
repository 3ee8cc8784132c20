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
from conftest import DEADLINE_SECONDS, TAAS_RUN, wait_until

pytest.importorskip("pyte", reason="no pyte here: scripts/requirements-test.txt has it")

from terminals import COLUMNS, DONE, FOOTER, ROWS, Terminal  # noqa: E402

LINES = ["hello from 0", *(f"val 0.{i:02}" for i in range(12))]
PRINT_LINES = "print('hello from', 0)\nfor i in range(12): print(f'val 0.{i:02}')\n"


def words(*command) -> str:
    return shlex.join(map(str, command))


def need(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"no {program} here: ./scripts/test installs it")
    return path


def test_a_terminal_shows_lines_above_a_row_about_the_run(launcher, terminal, gate):
    screen = terminal(TAAS_RUN, launcher.python(PRINT_LINES + gate.rank_waits()))
    rows = screen.wait_for(lambda rows: LINES[-1] in rows and FOOTER.search(rows[-1]), "lines and the footer are there")
    assert rows[:-1] == LINES
    gate.open()
    rows = screen.finish()
    assert rows[:-1] == LINES and DONE.search(rows[-1])


def test_tee_gets_the_lines_and_nothing_is_drawn_over_them(launcher, terminal):
    script = launcher.python(PRINT_LINES)
    screen = terminal("sh", "-c", f"{words(TAAS_RUN, script)} | tee log")
    rows = screen.finish()
    assert sorted(row for row in rows if not DONE.search(row)) == sorted(LINES)
    assert not screen.showed_footer()
    assert (launcher.folder / "log").read_text().splitlines() == LINES


@pytest.mark.parametrize("streams", ["2>&1 | tee log", "> log", "2> log", "2> log | tee out", "< /dev/null 2>&1 | cat"])
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
    script = launcher.python("for i in range(300): print('line', i)\n" + gate.rank_waits())
    screen = terminal("sh", "-c", f"{words(TAAS_RUN, script)} {both} | {need('less')}")
    rows = screen.wait_for(lambda rows: rows and rows[-1] == ":", "less shows its first page")
    assert rows == [*(f"line {i}" for i in range(ROWS - 1)), ":"]
    gate.open()
    screen.press("G")
    screen.wait_for("line 299", "less is at the end")
    screen.press("q")
    screen.finish()
    assert not screen.showed_footer()


def test_script_records_what_a_terminal_shows(launcher, terminal, gate):
    run = words(TAAS_RUN, launcher.python(PRINT_LINES + gate.rank_waits()))
    screen = terminal(need("script"), "-qec", run, "log")
    rows = screen.wait_for(lambda rows: LINES[-1] in rows and FOOTER.search(rows[-1]), "lines and the footer are there")
    assert rows[:-1] == LINES
    gate.open()
    assert screen.finish()[:-1] == LINES


def test_tmux_shows_what_a_terminal_shows(launcher, terminal, gate):
    tmux = [need("tmux"), "-S", str(launcher.folder / "tmux"), "-f", "/dev/null"]
    run = words(TAAS_RUN, launcher.python(PRINT_LINES + gate.rank_waits()))
    environment = launcher.environment | {"LC_ALL": "C.UTF-8"}

    def call(*arguments) -> str:
        return subprocess.run([*tmux, *map(str, arguments)], cwd=launcher.folder, env=environment, text=True, check=True,
                              timeout=DEADLINE_SECONDS, stdout=subprocess.PIPE).stdout

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
bars = [tqdm(total=20, position=i, desc=f"bar {i}", ncols=60, bar_format="{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}",
             mininterval=0) for i in range(8)]
for step in range(20):
    for bar in bars:
        bar.update()
for bar in bars:
    bar.close()
"""


def test_eight_bars_of_one_rank_stand_where_they_stand_alone(launcher, terminal):
    pytest.importorskip("tqdm", reason="no tqdm here: scripts/requirements-test.txt has it")
    script = launcher.python(NESTED_BARS)
    expected = alone(launcher, terminal, script)
    assert len(expected) == 8 and all(row.startswith(f"bar {i}: 100%|") for i, row in enumerate(expected))
    rows = terminal(TAAS_RUN, script).finish()
    assert [row for row in rows if not DONE.search(row)] == expected


def test_bars_of_eight_ranks_end_as_a_line_each(launcher, terminal):
    pytest.importorskip("tqdm", reason="no tqdm here: scripts/requirements-test.txt has it")
    script = launcher.python("import os\nfrom tqdm import tqdm\n"
                             "bar_format = '{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}'\n"
                             "for step in tqdm(range(20), desc=f'rank {os.environ[\"RANK\"]}', ncols=60, bar_format=bar_format): pass\n")
    rows = terminal(TAAS_RUN, "--nproc-per-node", 8, "-t", 3, script).finish()
    assert DONE.search(rows[-1])
    bars = sorted(row for row in rows[:-1] if "| 20/20" in row)
    assert [row.split("%|")[0] for row in bars] == [f"[{i}] rank {i}: 100" for i in range(8)]
    assert all(re.match(r"^\[\d\] rank \d: +\d+%\|.*\| \d+/20$", row) for row in rows[:-1]), rows


RICH = """
from rich.console import Console
from rich.progress import Progress
with Progress(console=Console(force_terminal=True, width=70), auto_refresh=False) as progress:
    tasks = [progress.add_task(f"task {i}", total=20) for i in range(2)]
    for step in range(20):
        for task in tasks:
            progress.update(task, advance=1, refresh=True)
        if step == 10:
            progress.console.print("half way")
print("after")
"""


def test_rich_draws_what_it_draws_alone(launcher, terminal):
    pytest.importorskip("rich", reason="no rich here: scripts/requirements-test.txt has it")
    script = launcher.python(RICH)
    expected = alone(launcher, terminal, script)
    assert expected[0] == "half way" and expected[-1] == "after" and len(expected) == 4
    rows = terminal(TAAS_RUN, script).finish()
    assert [row for row in rows if not DONE.search(row)] == expected


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


def test_a_breakpoint_in_any_rank_has_the_terminal(launcher, terminal):
    script = launcher.python("import os\nx = int(os.environ['RANK'])\nif x == 3: breakpoint()\nprint('after', x)\n")
    screen = terminal(TAAS_RUN, "--nproc-per-node", 4, "--debug-rank", 3, script)
    screen.wait_for(lambda rows: rows and rows[-1] == "(Pdb)", "the debugger asks")
    screen.press("p x * 14\n")
    screen.wait_for(lambda rows: "42" in rows and rows[-1] == "(Pdb)", "the debugger answers, and asks again")
    screen.press("c\n")
    rows = screen.finish()
    assert "after 3" in rows and not any("after 0" in row for row in rows)
    no_footer_below(screen, "(Pdb)")


def test_input_is_typed_behind_its_question_and_bars_come_after_the_answer(launcher, terminal, gate):
    screen = terminal(TAAS_RUN, launcher.python(
        "import sys\nname = input('name: ')\nfor i in range(5): sys.stderr.write(f'\\r{i + 1} of 5 for {name}')\n"
        + gate.rank_waits() + "print()\nprint('bye', name)\n"))
    screen.wait_for(lambda rows: rows and rows[-1] == "name:", "the question is there")
    screen.press("bob\n")
    screen.wait_for(lambda rows: any(FOOTER.search(row) for row in rows) and "5 of 5 for bob" in rows, "the bar is drawn")
    gate.open()
    rows = screen.finish()
    assert [row for row in rows if row][0] == "name: bob" and "bye bob" in rows
    no_footer_below(screen, "name:")


def test_dots_on_one_line_stay_on_one_line(launcher, terminal, gate):
    """Each is shown when it comes: the gate opens for the next one only then."""
    script = launcher.python("print('load', end='', flush=True)\n" + gate.rank_waits() + "print('.', end='', flush=True)\n"
                             + gate.rank_waits() + "print(' ok')\n")
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
    screen.wait_for(lambda rows: len(rows) == 2 and rows[0] == "working" and FOOTER.search(rows[1]), "the footer stands below it")
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
    assert not any(FOOTER.search(row) for row in rows[rows.index(LINES[-1]):])
    shell.press("fg\n")
    gate.open()
    shell.wait_for(lambda rows: any(map(DONE.search, rows)) and rows[-1] == "$", "the shell is back")
    shell.press("exit\n")


TALKS = """
import os, random, sys, time
rank, seed = os.environ["RANK"], int(sys.argv[1])
draw = random.Random(seed * 100 + int(rank))
for stream in sys.stdout, sys.stderr:
    stream.reconfigure(encoding="utf-8")
for i in range(12):
    stream = draw.choice([sys.stdout, sys.stderr])
    text = f"rank {rank} says {i} {draw.choice('xé漢🙂') * draw.randrange(25)}."
    kind = draw.randrange(5)
    if kind == 0:  # in pieces
        text = (text + "\\n").encode()
        at = draw.randrange(1, len(text))  # within a letter, too
        stream.buffer.write(text[:at])
        stream.flush()
        time.sleep(draw.random() / 100)
        stream.buffer.write(text[at:])
    elif kind == 1:  # a bar before it
        for state in range(3):
            stream.write(f"\\rbar of {rank}: {state}")
            stream.flush()
        stream.write(f"\\r{text}\\n")
    elif kind == 2:  # in colour
        stream.write(f"\\x1b[3{draw.randrange(1, 7)}m{text}\\x1b[0m\\n")
    elif kind == 3 and i % 4 == 0:  # a pause in which the live line is drawn
        time.sleep(0.15)
        stream.write(text + "\\n")
    else:
        stream.write(text + "\\n")
    stream.flush()
    time.sleep(draw.random() / 200)
"""


def without_words_of_the_launcher(rows: list) -> list:
    """Its last line, and what it may say of a busy machine (that it has no more inotify, say), with the rows that go on with it."""
    said, is_ours = [], False
    for row in rows:
        is_ours = row.startswith("taas-run: ") or (is_ours and not row.startswith("["))
        if not is_ours:
            said.append(row)
    return said


@pytest.mark.parametrize("tens", range(10))
def test_no_line_is_torn_however_ranks_talk_across_each_other(launcher, terminal, tens):
    """On a tall screen, and on one of a few rows, from which most lines have scrolled away: nothing of the live line with them."""
    script = launcher.python(TALKS)
    drawn = 0
    for seed in range(10 * tens, 10 * tens + 10):
        screen = terminal(TAAS_RUN, "--nproc-per-node", 3, "-t", 3, script, seed, rows=[ROWS, 7][seed % 2])
        screen.finish()
        rows = screen.all_rows()
        said = without_words_of_the_launcher(rows)
        assert all(re.fullmatch(r"\[(\d)\] rank \1 says \d+ (x*|é*|漢*|🙂*)\.", row) for row in said), f"seed {seed}: {said}"
        assert len(said) == 36 == len(set(said)), f"seed {seed}: {rows}"
        drawn += screen.showed_footer()
    assert drawn == 10


SAYS_WHAT_IT_SEES = """
import os, shutil, signal, sys
def say(*_):
    size = tuple(shutil.get_terminal_size((0, 0)))
    print("rank", os.environ["RANK"], "sees", sys.stdout.isatty(), sys.stderr.isatty(), *size, flush=True)
signal.signal(signal.SIGWINCH, say)
say()
"""


def test_the_rank_that_is_shown_sees_a_terminal_of_this_size_and_its_changes(launcher, terminal, gate):
    script = launcher.python(SAYS_WHAT_IT_SEES + "if os.environ['RANK'] == '0': " + gate.rank_waits())
    screen = terminal(TAAS_RUN, "--nproc-per-node", 2, script)
    screen.wait_for(f"rank 0 sees True True {COLUMNS} {ROWS}", "rank 0 has looked")
    fcntl.ioctl(screen.master, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    screen.wait_for("rank 0 sees True True 100 30", "rank 0 has been told of the change")
    gate.open()
    screen.finish()
    assert "rank 1 sees False False" in (launcher.run_folder() / "generation-0/rank-0001.out").read_text()


@pytest.mark.parametrize("flags", [["--tty", "never"], ["-t", "3"], ["--json"], ["-r", "1"]])
def test_a_rank_sees_no_terminal_where_it_is_not_shown_alone_on_one(launcher, terminal, flags):
    terminal(TAAS_RUN, "--nproc-per-node", 2, *flags, launcher.python(SAYS_WHAT_IT_SEES)).finish()
    assert "rank 0 sees False False" in (launcher.run_folder() / "generation-0/rank-0000.out").read_text()


def test_ranks_that_are_shown_together_know_the_width_and_that_there_are_colours(launcher, terminal):
    script = launcher.python("import os\nprint('it has', *map(os.environ.get, ('COLUMNS', 'FORCE_COLOR', 'TTY_INTERACTIVE')))\n")
    terminal(TAAS_RUN, "--nproc-per-node", 2, "-t", "3", script).finish()
    assert "it has 76 1 0" in (launcher.run_folder() / "generation-0/rank-0001.out").read_text()
    terminal(TAAS_RUN, "--nproc-per-node", 2, script, NO_COLOR="1").finish()
    assert "it has None None None" in (launcher.run_folder() / "generation-0/rank-0000.out").read_text()
    assert "it has None None None" in (launcher.run_folder() / "generation-0/rank-0001.out").read_text()


def test_a_rank_is_given_a_terminal_where_there_is_none(launcher):
    script = launcher.python(SAYS_WHAT_IT_SEES + "print('all of it', 'x' * 300_000, file=sys.stderr)")
    done = launcher.run("--tty", "always", script)
    assert "rank 0 sees True True 80 24" in done.stdout
    assert "all of it " + "x" * 300_000 + "\n" in done.stderr


def test_logs_of_a_rank_on_a_terminal_keep_colours_and_no_moves(launcher, terminal):
    script = launcher.python(r"import sys; sys.stdout.write('\x1b[31mred\x1b[0m\n\x1b[Aup\x1b[?1049h\n'); print('err', file=sys.stderr)")
    terminal(TAAS_RUN, script).finish()
    folder = launcher.run_folder() / "generation-0"
    assert (folder / "rank-0000.out").read_bytes() == b"\x1b[31mred\x1b[0m\nup\n"
    assert (folder / "rank-0000.err").read_bytes() == b"err\n"


FAILS_IN_RANK_2 = """
import os, sys, threading
seen = "post_mortem" in os.environ.get("PYTHONPATH", "") or "TAAS_POST_MORTEM" in os.environ
def work(shape):
    if os.environ["RANK"] == "2":
        raise ValueError(f"bad shape {shape}, hook seen: {seen}")
    threading.Event().wait()
work(7)
"""


def test_the_rank_that_raised_is_looked_at_while_the_others_stand_still(launcher, terminal):
    screen = terminal(TAAS_RUN, "--nproc-per-node", 4, "--on-error", "pdb", launcher.python(FAILS_IN_RANK_2))
    screen.wait_for("(Pdb, rank 2)", "it asks")
    assert "taas-run: rank 2 raised ValueError: bad shape 7, hook seen: False" in screen.rows()
    folder = launcher.run_folder() / "generation-0/post-mortem"
    wait_until(lambda: all((folder / name).exists() for name in "013"), "all ranks have begun")
    others = [(folder / name).read_text() for name in "013"]
    wait_until(lambda: all("State:\tT" in pathlib.Path(f"/proc/{pid}/status").read_text() for pid in others), "they are stopped")
    screen.press("p shape * 6\n")
    screen.wait_for("42", "a variable of the frame is there")
    screen.press("up\np work.__name__\n")
    screen.wait_for("'work'", "so is the caller's frame")
    screen.press("q\n")
    screen.wait_for("failed after", "the run has ended")
    assert any("rank 2 raised ValueError: bad shape 7" in row for row in screen.rows()[-12:])


def test_a_debugger_after_the_fact_needs_somebody_to_ask(launcher, terminal):
    script = launcher.python("1 / 0")
    for flags, words in [([script], "no terminal"), (["--no-python", "/bin/true"], "")]:
        done = launcher.run("--on-error", "pdb", *flags)
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1
    assert not (launcher.folder / "taas-runs").exists()
    assert launcher.run("--on-error", "ipdb", script).returncode == 2


def test_a_users_own_sitecustomize_is_imported_before_a_debugger_waits(launcher, terminal):
    (launcher.folder / "own").mkdir()
    (launcher.folder / "own/sitecustomize.py").write_text("import builtins\nbuiltins.mark = 'own one'\n")
    script = launcher.python("import os, subprocess, sys\nprint(mark, os.environ['PYTHONPATH'].split(':')[0].endswith('/own'), flush=True)\n"
                             "subprocess.run([sys.executable, '-c', 'print(mark, \"in a child\"); 1/0'])\n")
    screen = terminal(TAAS_RUN, "--on-error", "pdb", script, PYTHONPATH=str(launcher.folder / "own"))
    rows = screen.finish()
    assert "own one True" in " ".join(rows) and "own one in a child" in rows


def test_keys_are_echoed_by_readline_in_a_rank(launcher, terminal):
    script = launcher.python("import readline\nname = input('name? ')\nprint('hello', name)\n")
    screen = terminal(TAAS_RUN, script)
    screen.wait_for("name?", "it asks")
    screen.press("bil")
    screen.wait_for("name? bil", "what was typed stands there")
    screen.press("\x7flly\n")
    assert "hello billy" in screen.finish()
