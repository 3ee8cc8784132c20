"""Faults of the world around the ranks: memory, disks, ports, peers."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import TAAS_RUN, agent_of, repeated
from waiting import DEADLINE_SECONDS, is_gone, next_line, wait_until


@pytest.mark.gate
@repeated
def test_out_of_memory_kill_is_named_as_such(memory_group, launcher, attempt):
    result = launcher.run("--nproc-per-node", 4, *launcher.ranks("2=hog"), preexec_fn=memory_group)
    assert result.returncode == 137, result.stderr
    assert "rank 2 was killed by the kernel's out-of-memory killer" in result.stderr


def oom_score(pid) -> int:
    return int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text())


@pytest.mark.gate
def test_the_kernel_takes_ranks_and_what_they_start_before_agent_and_keeper(launcher):
    start_child = (
        "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\nprint(child.pid, flush=True)\nchild.wait()\n"
    )
    base = min(1000, oom_score("self") + 50)  # as a batch system may have given it
    raise_own = lambda: pathlib.Path("/proc/self/oom_score_adj").write_text(str(base))
    process = launcher.start("--nproc-per-node", 1, launcher.python(start_child), preexec_fn=raise_own)
    child = int(next_line(process.stdout))
    rank = int(pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[1])
    assert [oom_score(pid) for pid in (process.pid, agent_of(process.pid))] == [base, base]
    assert [oom_score(pid) for pid in (rank, child)] == [min(1000, base + 100)] * 2


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "taas-test", str(folder)], capture_output=True)
    if made.returncode != 0:
        pytest.skip("a small tmpfs cannot be mounted here (needs root)")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(path):
    try:
        with open(path, "wb", buffering=0) as filler:
            while filler.write(bytes(65536)) > 0:
                pass
    except OSError:
        pass


@pytest.mark.gate
@repeated
def test_full_log_disk_does_not_end_training(launcher, small_disk, attempt):
    result = launcher.run(
        "--nproc-per-node", 2, "--output", small_disk, *launcher.ranks("0=print:still here", "1=flood:8000000")
    )
    assert result.returncode == 0, result.stderr
    assert "still here" in result.stdout
    assert "no space left" in result.stderr.lower() and str(small_disk) in result.stderr


@pytest.mark.gate
def test_logs_go_on_when_the_disk_has_room_again(launcher, small_disk):
    script = launcher.python("import sys\nfor size in map(int, sys.stdin):\n    print('x' * size, flush=True)\n")
    requests, asking = os.pipe()
    process = launcher.start("--nproc-per-node", 1, "--output", small_disk, script, stdin=requests)
    os.close(requests)
    with open(asking, "w", buffering=1) as asking:
        print(1, file=asking)
        assert next_line(process.stdout) == "x\n", "the rank is up"
        fill(small_disk / "filler")
        print(20000, file=asking)  # more than the last page of any file
        assert len(next_line(process.stdout)) == 20001
        assert "No space left on device" in next_line(process.stderr, "rank-0000.out")
        (small_disk / "filler").unlink()
        print(5, file=asking)
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, err
    text = next(small_disk.glob("*/generation-0/rank-0000.out")).read_text()
    assert re.search(r"bytes are missing here: No space left on device]\n(x*\n)?xxxxx\n$", text), text[-100:]
    assert '"finish"' in next(small_disk.glob("*/journal.jsonl")).read_text()


@pytest.mark.gate
@repeated
def test_full_disk_is_reported_before_training(launcher, small_disk, attempt):
    fill(small_disk / "filler")
    result = launcher.run("--nproc-per-node", 2, "--output", small_disk, *launcher.ranks("*=exit:0"))
    assert result.returncode == 2
    assert str(small_disk) in result.stderr
    assert not list(launcher.barrier.iterdir()), "no rank was started"


@pytest.mark.gate
@repeated
def test_master_port_in_use_is_said_by_number(launcher, attempt):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = launcher.run("--nproc-per-node", 2, "--master-port", port, *launcher.ranks("*=exit:0"))
    assert result.returncode == 2, result.stderr
    assert str(port) in result.stderr
    assert not list(launcher.barrier.iterdir()), "no rank was started"


@pytest.mark.gate
@repeated
def test_garbage_on_the_store_port_disturbs_nobody(launcher, attempt):
    process = launcher.start("--nproc-per-node", 2, *launcher.ranks("*=graceful:0"))
    pids = launcher.wait_for_ranks(2)
    environment = pathlib.Path(f"/proc/{pids[0]}/environ").read_bytes().split(b"\0")
    port = next(int(item.split(b"=")[1]) for item in environment if item.startswith(b"MASTER_PORT="))
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), b"\x00\xce\xf7\x85\x3c\x03" + b"\xff" * 64):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.settimeout(DEADLINE_SECONDS)
            try:
                client.sendall(garbage)
                client.shutdown(socket.SHUT_WR)
                while client.recv(4096):
                    pass
            except ConnectionError:
                pass
    assert not any(is_gone(pid) for pid in pids)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.gate
@repeated
def test_exit_order_is_kept_when_the_launcher_was_not_looking(launcher, attempt):
    process = launcher.start("--nproc-per-node", 8, *launcher.ranks("*=stay"))
    pids = launcher.wait_for_ranks(8)
    agent = agent_of(process.pid)
    os.kill(agent, signal.SIGSTOP)
    for rank in (6, 1, 3):
        os.kill(pids[rank], signal.SIGKILL)
        wait_until(lambda: is_gone(pids[rank]), "the rank is dead")
    os.kill(agent, signal.SIGCONT)
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 137, err
    assert "rank 6 was killed by SIGKILL" in err


@pytest.mark.gate
def test_closed_console_does_not_end_training(launcher):
    process = launcher.start("--nproc-per-node", 1, *launcher.ranks("*=flood:4000000"))
    process.stdout.close()
    assert process.wait(timeout=DEADLINE_SECONDS) == 0
    assert sum(path.stat().st_size for path in launcher.run_folder().rglob("rank-*.out")) == 4000000


@pytest.mark.gate
def test_launcher_links_no_libtorch():
    if shutil.which("ldd") is None:
        pytest.skip("no ldd here")
    assert "torch" not in subprocess.run(["ldd", TAAS_RUN], capture_output=True, text=True).stdout
