"""What somebody meets in the first hour: commands, mistakes on the command line, and what a run leaves to look at."""

import datetime
import getpass
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from conftest import TAAS_RUN

DOCS = pathlib.Path(__file__).parents[2] / "docs"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def first_event(launcher) -> dict:
    with open(launcher.run_folder() / "journal.jsonl") as journal:
        return json.loads(journal.readline())


@pytest.mark.gate
def test_the_journal_begins_with_what_was_run(launcher):
    git = launcher.folder / ".git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs/heads/main").write_text(COMMIT + "\n")
    (launcher.folder / "train.py").write_text("")
    (launcher.folder / "elsewhere").mkdir()
    before = datetime.datetime.now().astimezone().replace(microsecond=0)
    launcher.run("--nproc-per-node", 2, "train.py", "--name", "my run", env={"USER": getpass.getuser()})
    told = first_event(launcher)
    assert told["event"] == "run_started" and told["t"] < 60
    assert told["command"] == f"{TAAS_RUN} --nproc-per-node 2 train.py --name 'my run'"
    assert told["folder"] == str(launcher.folder)
    assert told["host"] == os.uname().nodename and told["user"] == getpass.getuser()
    assert (
        before
        <= datetime.datetime.strptime(told["time"], "%Y-%m-%dT%H:%M:%S%z")
        <= datetime.datetime.now().astimezone()
    )
    version = subprocess.run([TAAS_RUN, "--version"], capture_output=True, text=True, check=True).stdout
    assert f"taas-run {told['taas_run']}\n" == version
    major, minor = sys.version_info[:2]
    assert re.fullmatch(rf"{major}\.{minor}(\.\d+)?", told["python"])
    assert told["commit"] == COMMIT
    (launcher.folder / "elsewhere/link.py").symlink_to(launcher.folder / "train.py")
    launcher.folder /= "elsewhere"
    launcher.run(sys.executable, "link.py")
    assert first_event(launcher)["commit"] == COMMIT, "the program's, whatever starts it"


def test_a_commit_is_found_where_git_has_packed_it_and_in_a_second_work_tree(launcher):
    repository = launcher.folder / "repository/.git"
    (repository / "worktrees/other").mkdir(parents=True)
    (repository / "HEAD").write_text("ref: refs/heads/main\n")
    (repository / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/topic\n{COMMIT[::-1]} refs/heads/main\n")
    (repository / "worktrees/other/HEAD").write_text("ref: refs/heads/topic\n")
    (repository / "worktrees/other/commondir").write_text("../..\n")
    other = launcher.folder / "other"
    other.mkdir()
    (other / ".git").write_text(f"gitdir: {repository}/worktrees/other\n")
    for folder, commit in (repository.parent, COMMIT[::-1]), (other, COMMIT):
        (folder / "deep").mkdir()
        (folder / "deep/train.py").write_text("")
        launcher.run(folder / "deep/train.py")
        assert first_event(launcher)["commit"] == commit


@pytest.mark.parametrize("head", ["ref: refs/heads/none\n", "ref: ../../secret\n", "", "nonsense\n"])
def test_what_git_does_not_say_is_not_told(launcher, head):
    (launcher.folder / ".git").mkdir()
    (launcher.folder / ".git/HEAD").write_text(head)
    (launcher.folder / "secret").write_text("a secret\n")
    launcher.run(launcher.python(""))
    assert first_event(launcher)["commit"] == ""


def test_torch_is_told_as_python_finds_it(launcher):
    torch = pytest.importorskip("torch")
    (launcher.folder / "torch").mkdir()
    (launcher.folder / "torch/version.py").write_text("__version__ = 'of the folder, where Python looks for none'\n")
    launcher.run(launcher.python(""))
    assert first_event(launcher)["torch"] == torch.__version__


@pytest.mark.gate
def test_the_greps_of_the_docs_find_the_run_that_failed(launcher):
    for code in 0, 0, 3:
        launcher.run("/bin/sh", "-c", f"exit {code}")
    day = first_event(launcher)["time"][:10]
    block = re.search(r"```sh\n(failed=.*?)```", (DOCS / "output.md").read_text(), re.DOTALL).group(1)
    today = re.sub(r"\d{4}-\d\d-\d\d", day, block)
    found = subprocess.run(["sh", "-c", today], cwd=launcher.folder, capture_output=True, text=True).stdout
    assert len(found.splitlines()) == 1 and "exit 3" in found, found


@pytest.mark.gate
def test_a_crash_shows_where_in_python_it_was(launcher):
    script = launcher.python(
        "import ctypes, threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "def read():\n"
        "    ctypes.string_at(0)\n"
        "read()\n"
    )
    result = launcher.run("--nproc-per-node", 2, script)
    assert result.returncode == 128 + signal.SIGSEGV
    assert 'File "script.py", line 4 in read' in result.stderr
    assert "Segmentation fault" in result.stderr
    off = launcher.run("--nproc-per-node", 2, script, env={"PYTHONFAULTHANDLER": ""})
    assert off.returncode == 128 + signal.SIGSEGV and "line 4 in read" not in off.stderr


@pytest.mark.gate
def test_a_stopped_run_says_where_the_logs_are(launcher):
    process = launcher.start("--nproc-per-node", 2, *launcher.ranks("*=graceful:0"))
    launcher.wait_for_ranks(2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 128 + signal.SIGINT
    name = launcher.run_folder().name
    assert f"  logs: taas-runs/{name}/generation-0/\n" in said


@pytest.mark.gate
def test_help_has_the_commands_and_each_has_its_own(launcher):
    text = launcher.run("--help").stdout
    assert launcher.run("help").stdout == text
    for command in "devices", "token", "help":
        assert re.search(rf"^  {command} ", text, re.MULTILINE)
    assert launcher.run("devices", "--help").stdout.startswith("taas-run devices: List")
    assert launcher.run("token", "-h").stdout.startswith("taas-run token: Print")


@pytest.mark.parametrize(
    "arguments, code, line",
    [
        pytest.param(["device"], 127, "did you mean taas-run devices?", marks=pytest.mark.gate),
        (["devices", "all"], 127, "did you mean taas-run devices?"),
        pytest.param(["-n", "2", "train.py"], 2, "-n is mpirun's or srun's: --gpus N", marks=pytest.mark.gate),
        (["-n2", "train.py"], 2, "-n2 is mpirun's or srun's: --gpus N"),
        (["-np", "2", "train.py"], 2, "-np is mpirun's or srun's: --gpus N"),
        (["--ntasks=2", "train.py"], 2, "--ntasks is mpirun's or srun's: --gpus N"),
        (["--max-retries", "2", "train.py"], 2, "--max-retries is called --max-restarts here"),
    ],
)
def test_what_is_mistyped_is_told_with_what_was_meant(launcher, arguments, code, line):
    result = launcher.run(*arguments)
    assert result.returncode == code
    assert line in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.gate
def test_an_option_behind_the_program_is_told_unless_the_program_knows_it(launcher):
    script = launcher.python("")
    assert "--nproc-per-node stands behind" in launcher.run(script, "--nproc-per-node", 2).stderr
    assert "--nnodes=2 stands behind" in launcher.run(script, "--lr", 1, "--nnodes=2").stderr
    script = launcher.python("import sys  # --nproc_per_node and --gpus are read here\n")
    result = launcher.run(script, "--nproc-per-node", 2, "--gpus", 4, "--lr", 1)
    assert "stands behind" not in result.stderr


@pytest.mark.gate
def test_cpus_without_a_registered_loader_had_no_effect(launcher):
    result = launcher.run("--nproc-per-node", 1, "--cpus", 1, launcher.python("print(1)\n"))
    assert result.returncode == 0, result.stderr
    assert "--cpus had no effect" in result.stderr
    failed = launcher.run("--nproc-per-node", 1, "--cpus", 1, launcher.python("raise SystemExit(3)\n"))
    assert "--cpus had no effect" not in failed.stderr


@pytest.mark.gate
def test_a_module_that_is_not_there_and_a_relative_import_have_a_way_out(launcher):
    package = launcher.folder / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('a package of which no code may run')\n")
    (package / "a.py").write_text("from . import b\n")
    dry = launcher.run("--dry-run", "-m", "pkg.typo")
    assert dry.returncode == 127 and len(dry.stderr.splitlines()) == 1
    assert "-m pkg.typo: there is no module pkg.typo" in dry.stderr
    assert launcher.run("--dry-run", "-m", "pkg.a").returncode == 0
    assert "no module pkg.__main__" in launcher.run("--dry-run", "-m", "pkg").stderr
    deep = launcher.folder / "space/deeper"  # of namespace packages
    deep.mkdir(parents=True)
    (deep / "train.py").write_text("")
    assert launcher.run("--dry-run", "-m", "space.deeper.train").returncode == 0
    assert "no module space.none, neither" in launcher.run("--dry-run", "-m", "space.none.train").stderr
    assert "no module pkg.a.b" in launcher.run("--dry-run", "-m", "pkg.a.b").stderr
    for name in "typo", "json.typo":
        assert "is the module's name right" in launcher.run("-m", name).stderr
    (package / "__init__.py").write_text("")
    relative = launcher.run("pkg/a.py")
    assert relative.returncode == 1 and "-m package.module" in relative.stderr


@pytest.mark.gate
def test_the_plan_fits_a_screen(launcher):
    text = launcher.run(
        "--nnodes", 16, "--nproc-per-node", 1, "--env", "MINE=1", "--dry-run", *launcher.ranks("*=exit:0")
    ).stdout
    assert text.count("\n") <= 24
    assert "  RANK=0 WORLD_SIZE=16 " in text and "MINE=1" in text and "TORCHELASTIC" not in text


@pytest.mark.gate
def test_a_report_fits_eighty_columns_with_the_paths_of_readme(launcher):
    launcher.folder.joinpath("load.py").write_text("def load():\n    raise ValueError('bad shape')\n")
    result = launcher.run("--nproc-per-node", 1, launcher.python("from load import load\nload()\n"))
    report = result.stderr[result.stderr.index("taas-run: rank 0 raised") :]
    assert '  File "script.py", line 2, in <module>' in report and '  File "load.py", line 2, in load' in report
    assert f"  log: taas-runs/{launcher.run_folder().name}/generation-0/rank-0000.err\n" in report
    assert all(len(line) <= 80 for line in report.splitlines()), report


@pytest.mark.gate
def test_a_rank_that_lost_its_peer_gets_one_line(launcher):
    """Rank 0 waits in a socket for rank 1, which raises; a stop does not end rank 0 before it has raised as well."""
    script = launcher.python(
        "import os, signal, socket\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.environ['RANK'] == '1':\n"
        "    with socket.socket(socket.AF_UNIX) as peer:\n"
        "        peer.bind('\\0' + os.environ['TAAS_RUN_ID'])\n"
        "        peer.listen()\n"
        "        there, _ = peer.accept()\n"
        "        there.recv(1)\n"
        "        raise ValueError('bad shape')\n"
        "peer = socket.socket(socket.AF_UNIX)\n"
        "while peer.connect_ex('\\0' + os.environ['TAAS_RUN_ID']):\n"
        "    pass\n"
        "peer.send(b'xx')\n"
        "try:\n"
        "    peer.recv(1)\n"
        "except ConnectionResetError:\n"
        "    raise RuntimeError('[pair.cc:561] Connection closed by peer') from None  # gloo's words\n"
    )
    result = launcher.run("--nproc-per-node", 2, script)
    assert "rank 1 raised ValueError: bad shape" in result.stderr
    log = (launcher.run_folder() / "generation-0/rank-0000.err").read_text()
    assert "Connection closed by peer" in log
    assert f"taas-run: rank 0: lost its peer ({len(log.splitlines())} lines in its log)\n" in result.stderr
    assert "Connection closed" not in result.stderr
    shown = launcher.run("--nproc-per-node", 2, "--verbose", script)
    assert "Connection closed" in shown.stderr
