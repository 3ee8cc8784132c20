"""Many ranks and much output at once."""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile

import pytest
from conftest import TAAS_RUN, Launcher
from waiting import DEADLINE_SECONDS, is_gone, next_line, wait_until


@pytest.mark.gate
def test_two_hundred_ranks_stop_when_one_fails(launcher):
    result = launcher.run("--gpus", 200, "--gpus-per-node", 50, "--oversubscribe", *launcher.ranks("137=exit:9"))
    assert result.returncode == 9, result.stderr
    assert "rank 137" in result.stderr
    assert all(is_gone(int(path.read_text())) for path in launcher.barrier.glob("ready-0-*"))


@pytest.fixture
def on_one_core(launcher):
    """Shows the plan of a machine with one core and no GPU; `sbatch` is whether SLURM's commands are there."""
    taskset, core = shutil.which("taskset"), min(os.sched_getaffinity(0))

    def call(*arguments, sbatch=False, **variables):
        tools = launcher.folder / ("with-sbatch" if sbatch else "without")
        tools.mkdir(exist_ok=True)
        if sbatch:
            (tools / "sbatch").write_text("#!/bin/sh\n")
            (tools / "sbatch").chmod(0o755)
        return launcher.run(
            *arguments,
            "--dry-run",
            *launcher.ranks("*=exit:0"),
            before=[taskset, "-c", core],
            env={"PATH": str(tools), "CUDA_VISIBLE_DEVICES": "", **variables},
        )

    return call


@pytest.mark.gate
def test_many_times_more_cpu_ranks_than_cores_need_consent(on_one_core):
    refused = on_one_core("--gpus", 17)
    assert refused.returncode == 2 and refused.stdout == ""
    assert refused.stderr == (
        "taas-run: no GPU here: 17 CPU ranks on 1 core are more than 8 for each core: --hosts or SLURM add "
        "machines, --oversubscribe runs them here\n"
    )
    for allowed in ["--gpus", 16], ["--gpus", 17, "--oversubscribe"], ["--nproc-per-node", 17]:
        done = on_one_core(*allowed)
        assert done.returncode == 0, done.stderr


def test_where_jobs_can_be_submitted_that_is_named(on_one_core):
    refused = on_one_core("--gpus", 17, sbatch=True)
    assert (
        refused.returncode == 2
        and "for each core: --slurm submits them as a job, --oversubscribe runs" in refused.stderr
    )
    hint = "no GPU here: 16 CPU ranks with gloo on 2 simulated nodes; --slurm submits them as a job\n"
    assert hint in on_one_core("--gpus", 16, sbatch=True).stdout
    for here in (
        {"arguments": ["--gpus", 16]},
        {"arguments": ["--gpus", 16, "--standalone"], "sbatch": True},
        {"arguments": ["--gpus", 16], "sbatch": True, "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1"},
    ):
        done = on_one_core(*here.pop("arguments"), **here)
        assert done.returncode == 0 and "16 CPU ranks with gloo" in done.stdout and "--slurm" not in done.stdout, (
            done.stderr
        )


@pytest.mark.gate
def test_all_ranks_flood_and_every_byte_is_kept(launcher):
    result = launcher.run("--nproc-per-node", 8, *launcher.ranks("*=flood:3000000"))
    assert result.returncode == 0, result.stderr
    sizes = [path.stat().st_size for path in launcher.run_folder().rglob("rank-*.out")]
    assert sizes == [3000000] * 8
    assert len(result.stdout) == 3000000


def limited(which, limit):
    return lambda: resource.setrlimit(which, (limit, limit))


@pytest.mark.parametrize(
    "limit, ranks, needed", [(10, 1, 56), pytest.param(20, 8, 112, marks=pytest.mark.gate), (72, 8, 112)]
)
def test_too_few_open_files_are_told_of_before_anything_starts(launcher, limit, ranks, needed):
    """The run was aborted, or a rank "cannot duplicate"."""
    result = launcher.run(
        "--nproc-per-node", ranks, *launcher.ranks("*=exit:0"), preexec_fn=limited(resource.RLIMIT_NOFILE, limit)
    )
    assert result.returncode == 2, result.stderr
    assert f"the limit of open files is {limit}" in result.stderr and f"needs {needed}" in result.stderr
    assert not (launcher.folder / "taas-runs").exists()


@pytest.mark.gate
def test_as_many_open_files_as_are_said_to_be_needed_are_enough(launcher):
    for ranks, needed in (1, 56), (8, 112):
        result = launcher.run(
            "--nproc-per-node", ranks, "/bin/true", preexec_fn=limited(resource.RLIMIT_NOFILE, needed)
        )
        assert result.returncode == 0, result.stderr


@pytest.fixture
def ordinary(monkeypatch):
    """A launcher, and the options that run it as an ordinary user with few processes: root has no such limit, and the
    processes of an ordinary user's own tests would count."""
    if os.geteuid() != 0:
        pytest.skip("only root can become a user who has no other process")
    user = 60000 + os.getpid() % 5000
    with tempfile.TemporaryDirectory(prefix="taas-limits-") as folder:  # pytest's own is closed to other users
        shutil.copy2(TAAS_RUN, folder)
        monkeypatch.setattr("conftest.TAAS_RUN", f"{folder}/taas-run")
        launcher = Launcher(pathlib.Path(folder))
        launcher.environment["HOME"] = folder
        # A build with AddressSanitizer looks for leaks by a thread of its own, which these limits refuse.
        launcher.environment["ASAN_OPTIONS"] = f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"
        os.chown(folder, user, user)
        yield launcher, {"user": user, "group": user, "extra_groups": []}
        launcher.end_all()


WRITE = 'echo "$RANK" > "$TAAS_OUTPUT_DIR/result-$RANK"'


def results(launcher) -> list:
    return sorted(path.name for path in (launcher.run_folder() / "output").iterdir())


@pytest.mark.gate
def test_however_few_processes_there_may_be_a_line_says_what_could_not_be_started(ordinary):
    """A thread that the system did not start ended the launcher or its agent by std::terminate."""
    launcher, user = ordinary
    for limit in range(1, 40):
        result = launcher.run(
            "--nproc-per-node=2",
            "--preload=none",
            "sh",
            "-c",
            WRITE,
            preexec_fn=limited(resource.RLIMIT_NPROC, limit),
            **user,
        )
        if result.returncode == 0:
            break
        assert result.returncode in (2, 126), (limit, result.stderr)
        assert "can be started: Resource" in result.stderr or "cannot start" in result.stderr, (limit, result.stderr)
        assert "ulimit -u" in result.stderr, (limit, result.stderr)
        assert "terminate" not in result.stderr, (limit, result.stderr)
    assert result.returncode == 0 and limit > 2, (limit, result.stderr)
    assert results(launcher) == ["result-0", "result-1"]


@pytest.mark.gate
def test_a_run_goes_on_when_no_further_thread_can_be_started(ordinary):
    """The first copy into output/ has a thread of its own, which ended the run where there was none to be had."""
    launcher, user = ordinary
    rank = f": > began; until [ -e go ]; do :; done; {WRITE}"
    process = launcher.start("--nproc-per-node=1", "--preload=none", "sh", "-c", rank, **user)
    wait_until((launcher.folder / "began").exists, "the rank is up")
    for pid in launchers_above(process.pid):
        subprocess.run(["prlimit", f"--pid={pid}", "--nproc=1"], check=True, **user)
    (launcher.folder / "go").touch()
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, err
    assert "no thread can be started" in err and "ulimit -u" in err, err
    assert results(launcher) == ["result-0"]


@pytest.mark.gate
def test_a_limit_of_file_sizes_does_not_kill_the_launcher(launcher):
    """SIGXFSZ did, before a word was said. Ranks get it as ever."""
    go = launcher.folder / "go"
    rank = f"grep SigIgn /proc/self/status; echo grep has ended; until [ -e {go} ]; do :; done"
    process = launcher.start("--nproc-per-node", 1, "sh", "-c", rank)
    told, _ = next_line(process.stdout), next_line(process.stdout)
    for pid in launchers_above(process.pid):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
    go.touch()
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0 and "File too large" in err, err
    assert int(told.split()[1], 16) & 1 << (signal.SIGXFSZ - 1) == 0


def launchers_above(first):
    """The process, and those of its descendants that run the same program."""
    program, found, waiting = os.readlink(f"/proc/{first}/exe"), [], [first]
    while waiting:
        pid = waiting.pop()
        if os.readlink(f"/proc/{pid}/exe") == program:
            found.append(pid)
        for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            waiting += map(int, children.read_text().split())
    return found


ASKS_TOO_MUCH = """
import os, socket, struct
blob = lambda text: struct.pack("<Q", len(text)) + text
store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
store.sendall(b"\\0" + struct.pack("<I", 0x3C85F7CE))
for first, count in (0, 1 << 17), (1 << 17, 1):
    keys = b"".join(blob(b"%d" % key) + blob(b"") for key in range(first, first + count))
    store.sendall(b"\\x0b" + struct.pack("<Q", count) + keys)
store.sendall(b"\\x11")
raise SystemExit(0 if store.recv(1) == b"" else 9)
"""


@pytest.mark.gate
def test_a_client_that_the_store_has_no_room_for_is_told_of_with_a_way_out(launcher):
    """Ranks saw "Connection reset by peer" and nothing else."""
    result = launcher.run(
        "--nproc-per-node", 1, "--store", "agent", "--preload", "none", launcher.python(ASKS_TOO_MUCH)
    )
    assert result.returncode == 0, result.stderr
    assert "131073 keys" in result.stderr and "--store rank0" in result.stderr
