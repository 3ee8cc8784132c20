"""Runs that come from a session (taas-run up): its life, what it is no use for, and that nothing is ever stale or left."""

import fcntl
import itertools
import json
import os
import pathlib
import pty
import resource
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import TAAS_RUN, Launcher, wait_until

NUMBERS = itertools.count()
MODULES = "decimal,multiprocessing"
EDITS = 500 if os.environ.get("TAAS_FULL") else 12
STAYS = """
import os, pathlib, time
rank = os.environ["RANK"]
pathlib.Path(f"up-{rank}").write_text(str(os.getpid()))
while not pathlib.Path("may-end").exists():
    time.sleep(0.01)
"""


class Session:
    """Its name is its own, and the processes that come from it are known by a variable."""

    def __init__(self, launcher: Launcher):
        self.launcher = launcher
        self.name = f"cli-{os.getpid()}-{next(NUMBERS)}"
        self.mark = f"MARK_OF_A_TEST={self.name}"
        launcher.environment["MARK_OF_A_TEST"] = self.name

    def up(self, *words, env=None) -> subprocess.CompletedProcess:
        return self.launcher.run("up", "--name", self.name, *words, env=env)

    def run(self, *words, **options) -> subprocess.CompletedProcess:
        return self.launcher.run("--in", self.name, *words, **options)

    def start(self, *words, **options) -> subprocess.Popen:
        return self.launcher.start("--in", self.name, *words, **options)

    def state(self) -> dict | None:
        document = json.loads(self.launcher.run("sessions", "--json").stdout)
        return next((session for session in document["sessions"] if session["name"] == self.name), None)

    def warmed(self) -> dict:
        """Its state once it is ready again."""
        wait_until(lambda: (state := self.state()) and state["state"] == "ready", "the session is ready")
        return self.state()

    def processes(self) -> list:
        """All that it has started, and itself, that have not ended."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                ended = folder.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "Z"
                if not ended and self.mark in folder.joinpath("environ").read_text(errors="replace").split("\0"):
                    found.append(int(folder.name))
            except OSError:
                pass
        return found

    def end(self):
        self.launcher.run("down", self.name)
        wait_until(lambda: not self.processes(), f"nothing is left of {self.processes()}")


@pytest.fixture
def session(launcher):
    session = Session(launcher)
    yield session
    (launcher.folder / "may-end").touch()
    session.end()


@pytest.fixture
def warm(session):
    done = session.up("--nproc-per-node", 2, "--preload", MODULES)
    assert done.returncode == 0, done.stderr
    assert f"session {session.name} is ready: decimal, multiprocessing in " in done.stdout
    return session


def preloaded(launcher: Launcher) -> list:
    lines = (launcher.run_folder() / "journal.jsonl").read_text().splitlines()
    return [event["preloaded"] for event in map(json.loads, lines) if event.get("event") == "rank_spawned"]


def fits(launcher: Launcher, done: subprocess.CompletedProcess) -> bool:
    """All ranks of this run came out of the session's interpreter."""
    assert done.returncode == 0, done.stderr
    return "does not fit" not in done.stderr and "without it" not in done.stderr and all(preloaded(launcher))


def children(pid: int) -> list:
    lists = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for text in lists for child in text.read_text().split()]


def command_line(pid: int) -> list:
    return pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def test_a_run_has_the_sessions_ranks_and_its_own_place(launcher, warm):
    script = launcher.python("import os, resource, sys\n"
                             "print(os.environ['WORLD_SIZE'], os.environ['OWN'], sys.argv[1:], os.getcwd(), oct(os.umask(0)), os.sched_getaffinity(0),\n"
                             "      resource.getrlimit(resource.RLIMIT_MSGQUEUE)[0], sys.stdin.readline())\n"
                             "sys.exit(int(sys.argv[1]) if os.environ['RANK'] == '0' else 0)")
    cpu = min(os.sched_getaffinity(0))
    limits = {"preexec_fn": lambda: (os.umask(0o027), os.sched_setaffinity(0, [cpu]), resource.setrlimit(resource.RLIMIT_MSGQUEUE, (4096, 8192)))}
    done = launcher.run("--in", warm.name, script, 3, env={"OWN": "value"}, stdin=open(launcher.folder / "script.py"), **limits)
    assert done.returncode == 3 and "rank 0 exited with code 3" in done.stderr, done.stderr
    assert done.stdout == f"2 value ['3'] {launcher.folder} 0o27 {{{cpu}}} 4096 import os, resource, sys\n\n"
    assert preloaded(launcher) == [True, True]


def test_what_the_run_says_counts_more_than_what_the_session_says(launcher, warm):
    script = launcher.python("import os; print('world', os.environ['WORLD_SIZE'])")
    assert "world 2" in warm.run(script).stdout
    assert "world 3" in warm.run("--nproc-per-node", 3, script).stdout
    assert "world 1" in warm.run("--nproc-per-node", 1, "--preload", "none", script).stdout and preloaded(launcher) == [False]


def test_restarts_come_out_of_the_same_interpreter(launcher, warm):
    script = launcher.python("import os, sys; sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] != '2')")
    done = warm.run("--max-restarts", 2, "--store", "rank0", script)
    assert fits(launcher, done) and len(preloaded(launcher)) == 6


def test_a_program_that_does_not_import_it_runs_as_well(launcher, warm):
    assert warm.run("--no-python", "/bin/echo", "plain").stdout == "plain\n"
    assert preloaded(launcher) == [False, False]


def test_several_runs_at_once(launcher, warm):
    script = launcher.python(STAYS.replace("up-{rank}", "{os.environ['OWN']}-{rank}"))
    started = [warm.start(script, env={"OWN": f"run{i}"}) for i in range(3)]
    wait_until(lambda: all((launcher.folder / f"run{i}-1").exists() for i in range(3)), "all runs are up")
    assert warm.state()["runs"] == 3
    (launcher.folder / "may-end").touch()
    assert [process.wait(60) for process in started] == [0, 0, 0]
    assert warm.state()["runs"] == 0


def test_signals_reach_the_run_and_its_exit_code_comes_back(launcher, warm):
    script = launcher.python("import os, pathlib, signal, sys, time\n"
                             "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(5)))\n"
                             "pathlib.Path(sys.argv[1] + os.environ['RANK']).touch()\ntime.sleep(600)")
    ends = []
    for way, words in ("session", ["--in", warm.name]), ("plain", ["--nproc-per-node", 2]):
        process = launcher.start(*words, script, way)
        wait_until(lambda: all((launcher.folder / f"{way}{rank}").exists() for rank in range(2)), "all handle signals")
        process.send_signal(signal.SIGTERM)
        ends.append((process.communicate(timeout=60)[0], process.returncode))
    assert ends[0] == ends[1] == ("saved\n", 143)


def test_a_run_that_has_ended_before_its_keeper_looks(launcher):
    """The two begin at once, and the kernel may give the agent all of its time first."""
    becomes_a_keeper = ("import os, socket, sys\n"
                        "ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                        "agent = os.fork() or os._exit(7)\n"
                        "os.waitid(os.P_PID, agent, os.WEXITED | os.WNOWAIT)\n"
                        "ours.set_inheritable(True)\n"
                        "os.execv(sys.argv[1], [sys.argv[1], '--keep', str(agent), str(ours.fileno())])\n")
    keeper = subprocess.run([sys.executable, "-c", becomes_a_keeper, TAAS_RUN], env=launcher.environment, timeout=60)
    assert keeper.returncode == 7


def test_ctrl_c_in_a_terminal(launcher, warm):
    script = launcher.python("import os, pathlib, sys, time\nprint(sys.stdout.isatty())\npathlib.Path('up' + os.environ['RANK']).touch()\ntime.sleep(600)")
    master, slave = pty.openpty()
    environment = {name: value for name, value in launcher.environment.items() if name != "CI"}  # in which ranks see no terminal
    process = subprocess.Popen([TAAS_RUN, "--in", warm.name, script], cwd=launcher.folder, env=environment, stdin=slave, stdout=slave,
                               stderr=slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, 0x540E, 0))
    os.close(slave)
    wait_until((launcher.folder / "up0").exists, "the rank that is shown is up")
    os.write(master, b"\x03")
    said = b""
    while True:
        try:
            said += os.read(master, 4096)
        except OSError:
            break
    assert process.wait(60) == 130 and b"True" in said and b"stopped" in said, said
    os.close(master)


def test_an_edit_is_always_picked_up(launcher, warm):
    """Of the script, of a module beside it and of a package; files are replaced and written in place, within one time stamp too."""
    package = launcher.folder / "package"
    package.mkdir()
    script = launcher.python("import beside, package.inner; print('sees', VALUE, beside.value, package.inner.value)".replace("VALUE", "0"))
    for number in range(EDITS):
        (launcher.folder / "script.py").write_text(f"import beside, package.inner\nprint('sees', {number}, beside.value, package.inner.value)")
        (launcher.folder / "beside.py").write_text(f"value = {number + 1}")
        new = package / "new.py"
        new.write_text(f"value = {number + 2}")
        new.replace(package / "inner.py")
        shutil.rmtree(package / "__pycache__", ignore_errors=True)
        shutil.rmtree(launcher.folder / "__pycache__", ignore_errors=True)
        done = warm.run(script)
        assert f"sees {number} {number + 1} {number + 2}" in done.stdout and fits(launcher, done), done.stderr


def test_a_module_of_the_user_that_is_called_like_one_of_pythons(launcher, warm):
    script = launcher.python("import decimal; print('own' if hasattr(decimal, 'own') else 'usual')")
    assert "usual" in warm.run(script).stdout
    (launcher.folder / "decimal.py").write_text("own = True")
    done = warm.run(script)
    assert "own" in done.stdout and f"{launcher.folder}/decimal would be imported in place of the module" in done.stderr


def test_a_module_that_was_imported_and_has_changed(launcher, session):
    modules = launcher.folder / "modules"
    modules.mkdir()
    (modules / "heavy.py").write_text("value = 1")
    env = {"PYTHONPATH": str(modules), "PYTHONDONTWRITEBYTECODE": "1"}
    assert session.up("--nproc-per-node", 1, "--preload", "heavy", env=env).returncode == 0
    script = launcher.python("import heavy; print('heavy', heavy.value)")
    assert "heavy 1" in (done := session.run(script, env=env)).stdout and fits(launcher, done)
    (modules / "heavy.py").write_text("value = 22")
    done = session.run(script, env=env)
    assert "heavy 22" in done.stdout and f"{modules}/heavy.py has changed" in done.stderr
    session.warmed()
    assert "heavy 22" in (done := session.run(script, env=env)).stdout and fits(launcher, done)


@pytest.mark.parametrize("name, value", [("OMP_NUM_THREADS", "7"), ("LD_LIBRARY_PATH", "/nowhere"), ("PYTHONHASHSEED", "3")])
def test_a_changed_environment_makes_another_interpreter(launcher, warm, name, value):
    script = launcher.python(f"import os; print('has', os.environ.get({name!r}))")
    before = warm.run(script)
    assert fits(launcher, before)
    done = warm.run(script, env={name: value})
    assert f"has {value}" in done.stdout and f"does not fit: {name} is {value} now and was" in done.stderr
    assert preloaded(launcher) == [True, True]
    warm.warmed()
    assert fits(launcher, warm.run(script, env={name: value}))
    assert fits(launcher, warm.run(script, env={name: value, "UNRELATED": "2"}))


def test_another_python(launcher, warm):
    environment = launcher.folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    script = launcher.python("import sys; print('prefix', sys.prefix)")
    done = warm.run(script, env={"PYTHON_EXEC": f"{environment}/bin/python"})
    assert f"prefix {environment}" in done.stdout and "and the program wants" in done.stderr
    warm.warmed()
    done = warm.run(script, env={"PYTHON_EXEC": f"{environment}/bin/python"})
    assert f"prefix {environment}" in done.stdout and fits(launcher, done)


def test_another_python_path(launcher, warm):
    """It counts for the ranks, and nothing has to be imported again."""
    folders = [launcher.folder / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        (folder / "beside.py").write_text(f"value = {folder.name!r}")
    script = launcher.python("import sys, beside; print(beside.value, *(entry for entry in sys.path if 'first' in entry or 'second' in entry))")
    for path in (folders, folders[1:], [*folders[::-1], "relative"]):
        done = warm.run(script, env={"PYTHONPATH": ":".join(map(str, path))})
        assert done.stdout == " ".join([path[0].name, *(str(entry) for entry in path if entry != "relative")]) + "\n" and fits(launcher, done), done.stderr
    (folders[0] / "decimal.py").write_text("")
    done = warm.run(script, env={"PYTHONPATH": str(folders[0])})
    assert done.stdout.startswith("first") and "would be imported in place of" in done.stderr
    (folders[1] / "sitecustomize.py").write_text("import sys; sys.own = 1")
    done = warm.run(launcher.python("import sys; print('own', sys.own)"), env={"PYTHONPATH": str(folders[1])})
    assert "own 1" in done.stdout and "is new in PYTHONPATH" in done.stderr


def test_a_python_that_is_no_use_is_forgotten(launcher, session):
    """A run in an environment without the module takes nothing from those that have it."""
    modules = launcher.folder / "modules"
    modules.mkdir()
    (modules / "heavy.py").write_text("")
    env = {"PYTHONPATH": str(modules)}
    assert session.up("--nproc-per-node", 1, "--preload", "heavy", env=env).returncode == 0
    script = launcher.python("print('runs')")
    done = session.run(script)
    assert "runs" in done.stdout and "is no longer in PYTHONPATH" in done.stderr
    session.warmed()
    assert fits(launcher, session.run(script, env=env))


def test_a_script_in_place_of_an_interpreter(launcher, warm):
    """As pyenv has them: which Python it starts is not to be told from its name."""
    shim = launcher.folder / "python"
    shim.write_text(f"#!/bin/sh\nexec {warm.state()['python']} \"$@\"\n")
    shim.chmod(0o755)
    script = launcher.python("import sys; print('prefix', sys.prefix)")
    assert fits(launcher, warm.run(script, env={"PYTHON_EXEC": str(shim)}))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", launcher.folder / "venv"], check=True)
    shim.write_text(f"#!/bin/sh\nexec {launcher.folder}/venv/bin/python \"$@\"\n")
    done = warm.run(script, env={"PYTHON_EXEC": str(shim)})
    assert f"prefix {launcher.folder}/venv" in done.stdout and "does not fit: it is" in done.stderr


VICTIMS = ["client", "session", "python", "keeper", "agent", "interpreter", "rank"]


@pytest.mark.parametrize("victim", VICTIMS)
def test_whoever_is_killed_nothing_is_left(launcher, warm, victim):
    client = warm.start(launcher.python(STAYS))
    wait_until(lambda: all((launcher.folder / f"up-{rank}").exists() for rank in range(2)), "the ranks are up")
    daemon = warm.state()["pid"]
    keeper = next(pid for pid in children(daemon) if "--keep" in command_line(pid))
    agent, = children(keeper)
    ranks = [int((launcher.folder / f"up-{rank}").read_text()) for rank in range(2)]
    victims = {"client": client.pid, "session": daemon, "keeper": keeper, "agent": agent, "rank": ranks[0],
               "python": next(pid for pid in children(daemon) if pid != keeper),
               "interpreter": next(pid for pid in children(agent) if pid not in ranks)}
    os.kill(victims[victim], signal.SIGKILL)
    if victim in ("python", "interpreter"):  # it is needed for new ranks only
        (launcher.folder / "may-end").touch()
        assert client.wait(60) == 0, client.stderr.read()
        assert fits(launcher, warm.run(launcher.python("print('again')")))
    else:
        assert client.wait(60) != 0
        of_run = {client.pid, keeper, agent, *ranks, victims["interpreter"]}
        wait_until(lambda: not of_run & set(warm.processes()), "the run is gone")
        if victim == "session":
            wait_until(lambda: not warm.processes(), "the session is gone")


def test_down_lets_runs_end(launcher, warm):
    client = warm.start(launcher.python(STAYS))
    wait_until((launcher.folder / "up-1").exists, "the ranks are up")
    assert launcher.run("down", warm.name).stdout == f"taas-run: session {warm.name} has been ended\n"
    refused = warm.run(launcher.python("print('cold')"))
    assert refused.returncode == 2 and "there is no such session" in refused.stderr
    (launcher.folder / "may-end").touch()
    assert client.wait(60) == 0
    wait_until(lambda: not warm.processes(), "the session is gone")


def test_it_ends_itself_when_nobody_wants_it(session):
    assert session.up("--preload", MODULES, "--idle", "0.3").returncode == 0
    wait_until(lambda: not session.processes(), "the session is gone")
    assert session.state() is None


def test_it_keeps_nothing_of_its_callers(launcher, warm):
    """Descriptors, of which somebody may wait for the end, and the secret of nodes that join."""
    reader, writer = os.pipe()
    done = launcher.run("up", "--name", f"{warm.name}-2", "--preload", "json", pass_fds=[writer], env={"TAAS_TOKEN": "a" * 64})
    os.close(writer)
    assert done.returncode == 0 and os.read(reader, 1) == b""
    assert not any(b"TAAS_TOKEN" in pathlib.Path(f"/proc/{pid}/environ").read_bytes() for pid in warm.processes()
                   if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("taas-session"))
    launcher.run("down", f"{warm.name}-2")
    os.close(reader)


def test_up_once_more(launcher, warm):
    again = warm.up("--nproc-per-node", 2, "--preload", MODULES)
    assert again.returncode == 0 and "is ready" in again.stdout
    other = warm.up("--nproc-per-node", 3)
    assert other.returncode == 2 and "is there already, with other options" in other.stderr and other.stderr.count("\n") == 1
    state = warm.state()
    assert (state["state"], state["runs"], state["modules"]) == ("ready", 0, MODULES.split(","))
    assert state["memory_bytes"] > 1 << 20
    assert f"{warm.name}  decimal, multiprocessing in " in launcher.run("sessions").stdout


@pytest.mark.parametrize("words, said", [
    (["--preload", "none"], "nothing would be kept"), (["train.py"], "for no program in particular"), (["--idle", "soon"], "--idle soon"),
    (["--idle"], "seconds are missing"), (["--slurm", "--gpus", "2"], "on each of --hosts"), (["--nproc-per-node", "x"], "x"),
])
def test_up_that_cannot_be(session, words, said):
    done = session.up(*words)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert session.processes() == []


def test_a_module_that_cannot_be_imported(session):
    done = session.up("--preload", "there_is_none")
    assert done.returncode == 2 and "there is no module there_is_none" in done.stderr and done.stderr.count("\n") == 1
    wait_until(lambda: not session.processes(), "the session is gone")


def test_there_is_no_such_session(launcher):
    done = launcher.run("--in", "nobodys", launcher.python("print('never')"))
    assert done.returncode == 2 and "--in: nobodys: there is no such session on this machine" in done.stderr and done.stdout == ""
    assert launcher.run("down", "nobodys").returncode == 2
    assert not (launcher.folder / "taas-runs").exists()


def test_ways_onto_nodes_that_sessions_are_not_for(launcher, warm):
    done = warm.run("--slurm", "--gpus", 2, launcher.python("print('never')"))
    assert done.returncode == 2 and "--in: only for ranks on this machine, or over ssh" in done.stderr and done.stdout == ""


def test_a_session_of_another_taas_run(launcher, warm):
    """It is ended, and the run starts as if there were none."""
    copy = launcher.folder / "bin/taas-run"
    copy.parent.mkdir()
    shutil.copy(TAAS_RUN, copy)
    done = subprocess.run([copy, "--in", warm.name, launcher.python("print('it runs')")], cwd=launcher.folder, env=launcher.environment, text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 0 and "it runs" in done.stdout and "is of another taas-run and has been ended" in done.stderr
    wait_until(lambda: not warm.processes(), "the session is gone")


def test_variables_that_only_a_session_sets_mean_nothing_to_others(launcher):
    script = launcher.python("import os; print([name for name in os.environ if name.startswith('TAAS_SESSION')])")
    done = launcher.run(script, env={"TAAS_SESSION": "0 1 2 3", "TAAS_SESSION_WISHES": "{}"})
    assert done.returncode == 0 and done.stdout == "[]\n", done.stderr


def test_clients_that_talk_nonsense(launcher, warm):
    """And those that leave: the session goes on."""
    connect = ("import glob, os, socket\n"
               "for path in glob.glob(f'/tmp/taas-of-{os.geteuid()}*/run-*/session'):\n"
               "    for text in (b'', b'nonsense', b'{}', b'{\"ask\":\"run\",\"signal\":0}', b'{\"ask\":\"signal\",\"signal\":9}', b'{\"ask\":\"who\",\"signal\":0}'):\n"
               "        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:\n"
               "            client.connect(path)\n            text and client.send(text)\n")
    subprocess.run([sys.executable, "-c", connect], check=True)
    assert fits(launcher, warm.run(launcher.python("print('still there')")))
