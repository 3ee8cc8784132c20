"""Signals to the launcher: forwarded, waited for, then enforced; nothing outlives the run."""

import os
import pty
import signal
import subprocess

import pytest
from conftest import agent_of, repeated
from waiting import DEADLINE_SECONDS, deadline, is_gone, next_line, wait_until


@pytest.mark.gate
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_stop_signal_reaches_ranks_and_comes_back_as_code(launcher, name):
    process = launcher.start("--nproc-per-node", 4, *launcher.ranks("*=stay"))
    pids = launcher.wait_for_ranks(4)
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + getattr(signal, name), err
    assert all(is_gone(pid) for pid in pids)
    assert err.count(f"{name}: stopping all ranks") == 1, err
    assert f"stopped by {name}" in err


@pytest.mark.gate
@repeated
def test_ranks_may_save_when_asked_to_stop(launcher, attempt):
    process = launcher.start("--nproc-per-node", 2, *launcher.ranks("*=graceful:0"), env={"PYTHONUNBUFFERED": "1"})
    launcher.wait_for_ranks(2)
    assert next_line(process.stdout) == "waiting\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert "saved" in out
    assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.gate
@repeated
def test_rank_that_ignores_sigterm_is_killed_after_the_timeout(launcher, attempt):
    result = launcher.run("--nproc-per-node", 4, "--shutdown-timeout", 1, *launcher.ranks("0=exit:3", "2=stubborn"))
    assert result.returncode == 3, result.stderr
    assert is_gone(int((launcher.barrier / "ready-0-2").read_text()))


@pytest.mark.gate
@repeated
def test_control_c_twice_kills_at_once(launcher, attempt):
    controller, terminal = pty.openpty()
    process = launcher.start(
        "--nproc-per-node",
        4,
        "--color",
        "never",
        *launcher.ranks("*=stubborn"),
        start_new_session=True,
        stdout=terminal,
        stderr=terminal,
        preexec_fn=lambda: __import__("fcntl").ioctl(terminal, 0x540E, 0),
    )
    os.close(terminal)
    pids = launcher.wait_for_ranks(4)
    os.write(controller, b"\x03")
    seen = b""
    with deadline("SIGINT is told"):
        while b"SIGINT" not in seen:
            seen += os.read(controller, 4096)
    os.write(controller, b"\x03")
    assert process.wait(timeout=DEADLINE_SECONDS) == 128 + signal.SIGINT
    assert all(is_gone(pid) for pid in pids)
    os.close(controller)


@pytest.mark.gate
@repeated
@pytest.mark.parametrize("victim", ["keeper", "agent"])
def test_kill_9_leaves_no_process(launcher, victim, attempt):
    process = launcher.start("--nproc-per-node", 4, *launcher.ranks("*=orphan"))
    pids = launcher.wait_for_ranks(4)
    wait_until(lambda: len(list(launcher.barrier.glob("orphan-[0-9]"))) == 4, "all grandchildren are up")
    pids += [int((launcher.barrier / f"orphan-{rank}").read_text()) for rank in range(4)]
    agent = agent_of(process.pid)
    os.kill(process.pid if victim == "keeper" else agent, signal.SIGKILL)
    process.wait(timeout=DEADLINE_SECONDS)
    wait_until(lambda: all(is_gone(pid) for pid in [*pids, agent]), "no process is left")


@pytest.mark.gate
@repeated
def test_the_run_ends_with_the_process_of_end_with(launcher, attempt):
    """As a notebook's kernel starts it: killed, that has no farewell for its run."""
    starter = subprocess.Popen(["sleep", "600"])
    process = launcher.start("--nproc-per-node", 2, "--end-with", starter.pid, *launcher.ranks("*=orphan"))
    pids = launcher.wait_for_ranks(2)
    wait_until(lambda: len(list(launcher.barrier.glob("orphan-[0-9]"))) == 2, "all grandchildren are up")
    pids += [int((launcher.barrier / f"orphan-{rank}").read_text()) for rank in range(2)]
    starter.kill()
    assert process.wait(timeout=DEADLINE_SECONDS) == 128 + signal.SIGKILL, "before its parent has waited for it"
    wait_until(lambda: all(is_gone(pid) for pid in pids), "no process is left")
    starter.wait()


@pytest.mark.gate
@repeated
def test_grandchildren_in_their_own_session_end_with_the_run(launcher, attempt):
    process = launcher.start("--nproc-per-node", 2, "--shutdown-timeout", 1, *launcher.ranks("*=orphan"))
    launcher.wait_for_ranks(2)
    wait_until(lambda: len(list(launcher.barrier.glob("orphan-[0-9]"))) == 2, "all grandchildren are up")
    orphans = [int((launcher.barrier / f"orphan-{rank}").read_text()) for rank in range(2)]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_SECONDS)
    assert all(is_gone(pid) for pid in orphans), "gone before the launcher returns"


@pytest.mark.gate
def test_nohup_is_respected(launcher):
    process = launcher.start(
        "--nproc-per-node",
        2,
        *launcher.ranks("*=graceful:0"),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    pids = launcher.wait_for_ranks(2)
    process.send_signal(signal.SIGHUP)
    for pid in pids:
        os.kill(pid, signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + signal.SIGTERM, "the hang-up changed nothing"
