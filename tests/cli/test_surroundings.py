"""What surrounds a launch: containers, sandboxes without a network, terminals, folders and interpreters as people have
them."""

import ctypes
import errno
import fcntl
import os
import pathlib
import platform
import pty
import signal
import struct
import subprocess
import sys
import termios

import pytest
from conftest import own_namespaces
from waiting import DEADLINE_SECONDS, is_gone, wait_until

ORPHANS = 5


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


CALLS = {  # of x86-64
    "pidfd_open": 434,
    "pidfd_send_signal": 424,
    "close_range": 436,
    "openat2": 437,
    "memfd_create": 319,
    "statx": 332,
    "inotify_init1": 294,
    "faccessat2": 439,
    "renameat2": 316,
    "epoll_pwait2": 441,
    "landlock_create_ruleset": 444,
}
THREADS = {"clone3": 435}  # without it none can be started, where the error is not ENOSYS
CLONE = 56
AS_VFORK_WITH_DESCRIPTORS = 0x100 | 0x4000 | 0x400 | 17  # CLONE_VM, CLONE_VFORK, CLONE_FILES, SIGCHLD


def deny(error: int, calls: list[str], clone_flags: int = -1):
    """What a process runs before its program: these system calls fail so from then on, as in a sandbox.

    clone() fails where it is called with just these flags.
    """
    load, equal, answer = 0x20, 0x15, 0x06  # of the number, by which to jump, and what to return
    program = [(load, 0, 0, 0)]
    for call in calls:
        program += [(equal, 0, 1, (CALLS | THREADS)[call]), (answer, 0, 0, 0x00050000 | error)]
    if clone_flags >= 0:
        first_argument = (load, 0, 0, 16)
        program += [
            (equal, 0, 3, CLONE),
            first_argument,
            (equal, 0, 1, clone_flags),
            (answer, 0, 0, 0x00050000 | error),
        ]
    program.append((answer, 0, 0, 0x7FFF0000))
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    whole = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(text)))
    prctl, no_new_privileges, seccomp, filtered = ctypes.CDLL(None, use_errno=True).prctl, 38, 22, 2

    def begin(text=text):
        if prctl(no_new_privileges, 1, 0, 0, 0) != 0 or prctl(seccomp, filtered, whole) != 0:
            raise OSError(ctypes.get_errno(), "no filter")

    return begin


on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls are those of x86-64")


@pytest.mark.gate
@on_x86
@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
def test_a_run_ends_with_a_process_where_there_are_no_handles_of_processes(launcher, error):
    watched = subprocess.Popen(["sleep", "600"])
    rank = ["--no-python", "/bin/sh", "-c", "touch began; sleep 600"]
    options = ["--end-with", watched.pid, "--nproc-per-node", 1]
    process = launcher.start(*options, *rank, preexec_fn=deny(error, ["pidfd_open"]))
    wait_until((launcher.folder / "began").exists, "the rank is up")
    watched.kill()
    watched.wait()
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + 9


@pytest.mark.gate
@on_x86
@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
def test_output_is_published_where_no_thread_can_be_started(launcher, error):
    write = ["--no-python", "/bin/sh", "-c", 'echo 1 >"$TAAS_OUTPUT_DIR/file"']
    run = launcher.run("--nproc-per-node", 1, *write, preexec_fn=deny(error, ["clone3"]))
    assert run.returncode == 0, run.stderr
    assert (launcher.folder / "taas-runs" / "latest" / "output" / "file").read_text() == "1\n"


@pytest.mark.gate
@on_x86
@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
@pytest.mark.parametrize("calls", [["pidfd_open"], list(CALLS)], ids=["pidfd_open", "all"])
def test_a_kernel_that_knows_less(launcher, error, calls):
    denied = deny(error, calls)
    result = launcher.run("--nproc-per-node", 2, *launcher.ranks("1=exit:7", "0=stay"), preexec_fn=denied)
    assert result.returncode == 7, result.stderr
    process = launcher.start(
        "--nproc-per-node", 1, "--shutdown-timeout", 1, *launcher.ranks("0=orphan"), preexec_fn=denied
    )
    orphan = launcher.barrier / "orphan-0"
    wait_until(orphan.exists, "there is an orphan")
    process.terminate()
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + 15 and is_gone(int(orphan.read_text()))
    write = ["/bin/sh", "-c", 'echo "$RANK" >"$TAAS_OUTPUT_DIR/file-$RANK"']
    result = launcher.run("--nproc-per-node", 2, "--no-python", *write, preexec_fn=denied)
    assert result.returncode == 0 and len(list(launcher.run_folder().glob("output/file-*"))) == 2, result.stderr


@pytest.mark.gate
@on_x86
def test_ranks_start_where_no_process_can_share_memory_with_its_child(launcher):
    """qemu-user, under which containers of another architecture run, knows no such clone()."""
    denied = deny(errno.EINVAL, [], AS_VFORK_WITH_DESCRIPTORS)
    result = launcher.run("--nproc-per-node", 2, *launcher.ranks("1=exit:7", "0=stay"), preexec_fn=denied)
    assert result.returncode == 7, result.stderr
    missing = launcher.run("--nproc-per-node", 2, "--no-python", "/no/such/program", preexec_fn=denied)
    assert missing.returncode == 127 and "/no/such/program" in missing.stderr


@pytest.mark.parametrize("call", CALLS)
def test_a_kernel_without_one_system_call(launcher, call):
    result = launcher.run(
        "--nproc-per-node", 2, *launcher.ranks("1=exit:7", "0=stay"), preexec_fn=deny(errno.ENOSYS, [call])
    )
    assert result.returncode == 7, result.stderr


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
def test_lines_of_a_program_that_buffers_come_at_once_in_a_terminal(launcher):
    """They came when its buffer of 4096 bytes was full, and were lost when it was killed."""
    ours, theirs = pty.openpty()
    shell = "(echo a line; exec sleep 600) | grep line"
    process = launcher.start("--nproc-per-node", 1, "--no-python", "/bin/sh", "-c", shell, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while b"a line\r\n" not in said:
        said += os.read(ours, 1 << 16)
    process.terminate()
    assert process.wait(timeout=DEADLINE_SECONDS) == 128 + signal.SIGTERM
    os.close(ours)


@pytest.mark.gate
@pytest.mark.skipif(not os.path.exists("/proc/net/if_inet6"), reason="this kernel has no IPv6")
def test_the_ranks_of_a_machine_that_has_only_ipv6_meet(launcher):
    """Its store was at an address that the machine did not have, and ranks looked for it for half an hour."""
    only_ipv6 = 'ip link set lo up && ip address delete 127.0.0.1/8 dev lo && exec "$@"'
    script = launcher.python(
        "import torch, torch.distributed as d\nd.init_process_group('gloo')\n"
        "t = torch.ones(1)\nd.all_reduce(t)\nprint(t.item())\n"
    )
    run = launcher.run("--nproc-per-node", 2, script, before=[*own_namespaces("--net"), "sh", "-c", only_ipv6, "sh"])
    assert (run.returncode, run.stdout) == (0, "2.0\n"), run.stderr


@pytest.mark.gate
@pytest.mark.parametrize("end", ["", "; os.kill(os.getpid(), 9)"])
def test_a_stream_that_a_rank_has_made_non_blocking_blocks_again(launcher, end):
    """It is the shell's too, whose next program found nothing to read."""
    ours, theirs = os.pipe()
    program = launcher.python("import os; os.set_blocking(0, False)" + end)
    launcher.run("--nproc-per-node", 1, program, stdin=ours)
    assert os.get_blocking(ours)
    os.close(ours)
    os.close(theirs)


@pytest.mark.gate
def test_variables_of_a_job_without_srun_are_told(launcher):
    variables = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a,b", "SLURM_TASKS_PER_NODE": "1(x2)", "PATH": "/nowhere"}
    run = launcher.run("--nproc-per-node", 2, "--no-python", "/bin/true", env=variables)
    assert run.returncode == 2 and "srun" in run.stderr and "--standalone" in run.stderr, run.stderr
    assert (
        launcher.run("--standalone", "--nproc-per-node", 2, "--no-python", "/bin/true", env=variables).returncode == 0
    )


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
