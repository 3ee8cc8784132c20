"""`taas-run look`: what a run is at, seen from another terminal; Python's frames, and what processes wait for."""

import ctypes.util
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

import pytest

from conftest import DEADLINE_SECONDS, RANK_PROGRAM, TAAS_RUN, wait_until

PROGRAM = """
import os, pathlib, sys, threading, time

folder = pathlib.Path(sys.argv[1])


def compute():
    (folder / "busy").touch()
    while True:
        pass


class Reader:
    def fetch(self):
        (folder / "waits").touch()
        self.lock = threading.Lock()
        self.lock.acquire()
        self.lock.acquire()


if os.environ["RANK"] == "0":
    compute()
Reader().fetch()
"""


@pytest.fixture
def run(launcher):
    """A run of two ranks that have come to their lines; its id."""
    process = launcher.start("--nproc-per-node", "2", launcher.python(PROGRAM), str(launcher.folder))
    wait_until(lambda: (launcher.folder / "busy").exists() and (launcher.folder / "waits").exists(), "both ranks are there")
    name = launcher.run_folder().name
    wait_until(lambda: launcher.run("look", name).returncode == 0, "the run can be looked at")
    yield name
    process.terminate()
    process.communicate()


def looked(launcher, *arguments) -> dict:
    done = launcher.run("look", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_rank_is_shown_with_its_line(launcher, run):
    wait_until(lambda: looked(launcher, run)["ranks"][1]["activity"] == "blocked", "the lock is waited for")
    report = looked(launcher, run)
    assert report["run"] == run and report["world_size"] == 2 and report["state"] == "moves"
    busy, waits = report["ranks"]
    assert (busy["activity"], busy["doing"]) == ("busy", "is busy")
    assert busy["own_frames"][0]["function"] == "compute"
    assert waits["doing"] == "waits for a lock or another thread"
    line = 1 + [*PROGRAM.splitlines()].index("        self.lock.acquire()") + 1  # the second one
    assert waits["own_frames"][0]["line"] == line and waits["own_frames"][0]["file"] == str(launcher.folder / "script.py")
    assert waits["own_frames"][-1]["function"] == "<module>"
    assert waits["place"].endswith(f"fetch (script.py:{line})")


def test_the_page_says_the_same_in_words(launcher, run):
    wait_until(lambda: "waits for a lock" in launcher.run("look", run).stdout, "the lock is waited for")
    page = launcher.run("look", run[:-1]).stdout  # a beginning is enough
    assert page.startswith(f"run {run}, 2 ranks: moves\n")
    assert "in compute (script.py:" in page and ": is busy\n" in page


def test_one_rank_is_shown_with_all_of_its_threads(launcher, run):
    wait_until(lambda: looked(launcher, run)["ranks"][1]["activity"] == "blocked", "the lock is waited for")
    only = looked(launcher, run, "--rank", "1")["ranks"]
    assert [rank["rank"] for rank in only] == [1]
    (process,) = only[0]["processes"]
    assert process["pid"] == only[0]["pid"] and process["threads"][0]["tid"] == process["pid"]
    assert process["threads"][0]["wait"] == "lock"
    page = launcher.run("look", run, "--rank", "1").stdout
    assert f"thread {process['pid']} (" in page and "moves" not in page


@pytest.mark.parametrize("arguments, words", [
    (["no-such-run"], "no-such-run: no such run is under way on this machine; there "),
    (["RUN", "--rank", "7"], "rank 7 is not running; the run has 2 ranks"),
    (["--rank", "-1"], "look: --rank: "),
    (["--rnk", "1"], "look: "),
])
def test_what_cannot_be_looked_at_is_refused_in_a_line(launcher, run, arguments, words):
    done = launcher.run("look", *[run if word == "RUN" else word for word in arguments])
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"taas-run: {words}") and done.stderr.count("\n") == 1


def test_help_names_its_flags(launcher):
    done = launcher.run("look", "--help")
    assert done.returncode == 0 and all(flag in done.stdout for flag in ("--rank", "--json", "--watch"))


needs_libdw = pytest.mark.skipif(not ctypes.util.find_library("dw"), reason="no libdw here (package libdw1)")


@needs_libdw
def test_a_rank_of_cpp_has_functions(launcher):
    process = launcher.start("--nproc-per-node", "2", RANK_PROGRAM, "*=stay")
    wait_until(lambda: launcher.run_folder().name != "latest", "the run has a folder")
    name = launcher.run_folder().name
    wait_until(lambda: launcher.run("look", name, "--rank", "1").returncode == 0, "the rank can be looked at")

    def functions():
        (process,) = looked(launcher, name, "--rank", "1")["ranks"][0]["processes"]
        return [frame["function"] for frame in process["threads"][0]["frames"]]

    wait_until(lambda: functions()[-1:] == ["main"], "the rank has come to main()")
    seen = launcher.run("look", name).stdout
    assert re.search(r"in \w+ \(rank_program(\.cpp:\d+)?\): waits for a ", seen), seen  # a line where built with -g
    process.terminate()
    process.wait()


@needs_libdw
def test_the_function_is_named_that_holds_the_gil(launcher):
    program = "import ctypes\nctypes.PyDLL(None).sleep(1000)\n"
    process = launcher.start("--nproc-per-node", "2", launcher.python(program))
    wait_until(lambda: launcher.run_folder().name != "latest", "the run has a folder")
    name = launcher.run_folder().name
    words = "ranks 0-1 at script.py:2: holds the GIL in C code (sleep of libc.so.6), asleep"
    wait_until(lambda: words in launcher.run("look", name).stdout, "both ranks sleep")
    process.terminate()
    process.wait()


COUNTING = """
import os, pathlib, sys, time, taas

for _ in range(3):
    taas.step()
(pathlib.Path(sys.argv[1]) / os.environ["RANK"]).touch()
time.sleep(1000)
"""


def test_top_shows_a_line_a_rank_with_its_steps(launcher):
    process = launcher.start("--nproc-per-node", "2", launcher.python(COUNTING), str(launcher.folder))
    wait_until(lambda: all((launcher.folder / rank).exists() for rank in "01"), "both ranks count")
    name = launcher.run_folder().name
    wait_until(lambda: launcher.run("top", "--once", name).returncode == 0, "the run can be asked")
    page = launcher.run("top", "--once", name).stdout.splitlines()
    assert page[1].split() == ["rank", "phase", "line", "steps/s", "cpu", "memory"]
    assert [line.split()[0] for line in page[2:4]] == ["0", "1"] and "running" in page[2]
    report = json.loads(launcher.run("top", "--once", "--json", name).stdout)
    assert [rank["steps"] for rank in report["ranks"]] == [3, 3]
    assert all(rank["since_step_s"] >= 0 and rank["memory_bytes"] > 1 << 20 for rank in report["ranks"])
    process.terminate()
    process.wait()


def test_top_says_what_is_wrong_with_its_arguments(launcher):
    result = launcher.run("top", "--rank", "1")
    assert result.returncode == 2 and result.stderr.startswith("taas-run: top: ")


STUCK = """
import os, pathlib, sys, threading

def stuck():
    pathlib.Path(sys.argv[1], os.environ["RANK"]).touch()
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

stuck()
"""
A_USER = 54321


@pytest.mark.parametrize("flags, hides_processes", [((), False), (("--protect", "precious"), False), ((), True)],
                         ids=["as a user", "ranks under Landlock", "hidepid"])
def test_an_ordinary_user_may_look(launcher, flags, hides_processes):
    """Yama's ptrace_scope 1 allows it as well: the agent is an ancestor of its ranks."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    with tempfile.TemporaryDirectory() as name:  # where others may enter, unlike pytest's folders
        folder = pathlib.Path(name)
        marks, precious = folder / "marks", folder / "precious"
        program = pathlib.Path(shutil.copy(TAAS_RUN, folder))
        script = folder / "stuck.py"
        script.write_text(STUCK)
        for path in (folder, marks, precious):
            path.mkdir(exist_ok=True)
            os.chown(path, A_USER, A_USER)
        user = ["setpriv", f"--reuid={A_USER}", f"--regid={A_USER}", "--clear-groups"]
        run = shlex.join([*user, str(program), "--nproc-per-node", "2", *flags, str(script), str(marks)])
        look = shlex.join([*user, str(program), "look"])
        hide = "mount -t proc -o hidepid=2 proc /proc && " if hides_processes else ""
        commands = (f"{hide}{{ {run} & }}; while [ ! -e marks/0 ] || [ ! -e marks/1 ]; do kill -0 $! || exit 1; sleep 0.1; done\n"
                    f"until {look} >page 2>problem; do sleep 0.1; done; kill $!; wait $!")
        environment = {**launcher.environment, "HOME": name, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        result = subprocess.run(["unshare", "-m", "sh", "-c", commands], cwd=name, env=environment,
                                capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        page = (folder / "page").read_text() if (folder / "page").exists() else ""
    number = STUCK.splitlines().index("    lock.acquire()") + 2
    assert f"ranks 0-1 in stuck (stuck.py:{number}): waits for a lock or another thread" in page, (page, result)
