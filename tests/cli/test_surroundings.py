"""What surrounds a launch: containers, sandboxes without a network, terminals, folders and interpreters as people have
them."""

import fcntl
import os
import pathlib
import pty
import struct
import subprocess
import sys
import termios

import pytest
from waiting import DEADLINE_SECONDS, wait_until

ORPHANS = 5


def own_namespaces(*kinds: str) -> list[str]:
    """Words in front of a command, which give it those of a user that may have some."""
    words = ["unshare", *kinds] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", *kinds]
    if subprocess.run([*words, "true"], capture_output=True, timeout=DEADLINE_SECONDS).returncode != 0:
        pytest.skip(f"no {' '.join(kinds)} can be had here")
    return words


def children(process: int) -> list[int]:
    return [int(word) for word in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_zombie(process: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return False


@pytest.mark.gate
def test_the_first_process_of_a_container_reaps_what_others_leave_to_it(launcher):
    """As `docker exec` and probes do: their orphans are the first process's, and none of the run's own."""
    if os.geteuid() != 0:
        pytest.skip("entering the container takes root")
    before = own_namespaces("--fork", "--pid", "--mount-proc")
    process = launcher.start("--nproc-per-node", 2, *launcher.ranks("*=stay"), before=before)
    launcher.wait_for_ranks(2)
    (first,) = children(process.pid)
    agent = children(first)
    for number in range(ORPHANS):
        orphan = f"(exec >{launcher.folder}/orphan-{number} 2>&1; echo ended) & exit 0"
        subprocess.run(["nsenter", "-t", str(first), "-p", "sh", "-c", orphan], check=True, timeout=DEADLINE_SECONDS)
    written = [launcher.folder / f"orphan-{number}" for number in range(ORPHANS)]
    wait_until(lambda: all(path.exists() and path.read_text() for path in written), "all orphans have ended")
    wait_until(lambda: children(first) == agent, "they are reaped")
    assert not any(map(is_zombie, children(first)))
    os.kill(first, 15)
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + 15


@pytest.mark.gate
def test_loopback_that_is_down_is_named_at_once(launcher):
    before = own_namespaces("--net")
    plain = launcher.run("--nproc-per-node", 2, "--no-python", "/bin/echo", "works", before=before)
    assert plain.returncode == 0 and "loopback interface is down" in plain.stderr, plain.stderr
    script = launcher.python("import torch\n")
    training = launcher.run("--nproc-per-node", 2, script, before=before)
    assert training.returncode == 2 and training.stderr.count("\n") == 1, training.stderr
    assert "loopback interface is down" in training.stderr and "ip link set lo up" in training.stderr
    assert launcher.run("--nproc-per-node", 1, "--no-python", "/bin/true", before=before).stderr.count("\n") == 1


@pytest.mark.gate
@pytest.mark.parametrize(
    "rows, columns, variables",
    [(0, 0, {}), (24, 80, {"JPY_PARENT_PID": "1"}), (24, 80, {"TF_BUILD": "True"})],
    ids=["no size", "a notebook's cell", "a build"],
)
def test_a_terminal_on_which_nothing_can_be_drawn_gets_lines(launcher, rows, columns, variables):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {"TERM": "xterm-256color", "CI": "", **variables}
    process = launcher.start(
        "--nproc-per-node", 2, "--no-python", "/bin/echo", "a line", env=environment, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    try:
        while more := os.read(ours, 1 << 16):
            said += more
    except OSError:
        pass  # nobody has the terminal open any more
    os.close(ours)
    assert process.wait(timeout=DEADLINE_SECONDS) == 0
    assert said.startswith(b"a line\r\n") and b"\x1b[A" not in said and b"\x1b[2K" not in said and b"\r\x1b" not in said
    assert rows > 0 or b"\x1b" not in said


@pytest.mark.gate
@pytest.mark.parametrize("folder", ["read-only", "gone"])
def test_a_working_folder_that_cannot_be_written(launcher, folder):
    temporary, work = launcher.folder / "tmp", launcher.folder / "work"
    temporary.mkdir()
    work.mkdir()
    change = f"mount --bind {work} {work} && mount -o remount,ro,bind {work} && cd {work}"
    if folder == "gone":
        change = f"mkdir -p {work} && cd {work} && rmdir {work}"
    before = [*own_namespaces("--mount"), "sh", "-c", f'{change} && exec "$@"', "sh"]
    command = ["--nproc-per-node", 2, "--no-python", "/bin/sh", "-c", 'echo "$RANK" >"$TAAS_OUTPUT_DIR/file-$RANK"']
    run = launcher.run(*command, before=before, env={"TMPDIR": str(temporary)})
    assert run.returncode == 0, run.stderr
    (told,) = [line for line in run.stderr.splitlines() if "taas-runs cannot be written" in line]
    assert str(temporary) in told and "--output DIR" in told
    assert len(list(temporary.glob("taas-of-*/taas-runs/latest/output/file-*"))) == 2
    logs = launcher.folder / "logs"
    run = launcher.run("--log-dir", logs, *command, before=before, env={"TMPDIR": str(temporary)})
    assert run.returncode == 0 and len(list(logs.glob("taas-runs/latest/output/file-*"))) == 2, run.stderr
    chosen = launcher.run("--output", work / "runs", *command, before=before)
    assert chosen.returncode == (0 if folder == "gone" else 2), chosen.stderr


@pytest.mark.gate
def test_an_environment_that_is_not_the_first_in_path_is_told(launcher):
    """`conda activate` after a venv, a venv that is gone: the Python of the shell runs the program."""
    program = launcher.python("import sys\nprint(sys.executable)\n")
    python = pathlib.Path(sys.executable).parent
    run = launcher.run("--nproc-per-node", 2, program, env={"VIRTUAL_ENV": "/gone", "PYTHON_EXEC": ""})
    assert run.returncode == 0 and run.stdout.startswith(f"{python}/python"), run.stdout
    assert run.stderr.count(f"VIRTUAL_ENV names /gone, but the program runs with {python}/python3") == 1
