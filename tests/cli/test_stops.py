"""What stops, failures and successes leave time for: saves in whatever wraps a rank, and what ranks leave behind."""

import os
import pathlib
import signal
import sys

import pytest
import random_stops
from conftest import agent_of
from waiting import DEADLINE_SECONDS, is_gone, next_line, wait_until

HERE = pathlib.Path(__file__).parent
RUNS = 300 if os.environ.get("TAAS_FULL") else 6


@pytest.fixture
def stopping(launcher):
    """Starts two ranks of stopping_rank.py, behind a shell if so wanted, and waits until they train."""
    launcher.environment[random_stops.MARK] = str(launcher.folder)

    def start(way, seconds, *flags, wrapped=False, workers=0):
        program = [HERE / "stopping_rank.py", launcher.folder, way, seconds, workers]
        if wrapped:
            wrapper = launcher.folder / "wrapper.sh"
            wrapper.write_text(random_stops.WRAPPER)
            wrapper.chmod(0o755)
            program = ["--no-python", wrapper, *program]
        process = launcher.start("--nproc-per-node", 2, "--preload", "none", *flags, *program)
        ready = [launcher.folder / f"ready-{rank}" for rank in range(2)]
        wait_until(lambda: all(path.exists() for path in ready) or process.poll() is not None, "ranks train")
        return process, [int(path.read_text()) for path in ready]

    return start


def saved(launcher) -> list:
    return sorted(int(path.name.split("-")[1]) for path in launcher.folder.glob("saved-?"))


@pytest.mark.parametrize("way", ["handler", "raises"])
def test_a_wrapped_rank_has_all_the_time_to_save_and_is_told_once(launcher, stopping, way):
    """Its shell ends of the group's signal at once."""
    (launcher.folder / "hold").touch()
    process, _ = stopping(way, 0, wrapped=True)
    process.send_signal(signal.SIGTERM)
    assert "stopping_rank.py" in next_line(process.stderr, "left behind processes that have not")
    (launcher.folder / "hold").unlink()
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert saved(launcher) == [0, 1], err
    assert "left behind" not in err


@pytest.mark.gate
def test_a_wrapped_rank_saves_after_a_failure_too(launcher, stopping):
    process, ranks = stopping("handler", 1, wrapped=True)
    os.kill(ranks[0], signal.SIGKILL)
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + signal.SIGKILL, err
    assert saved(launcher) == [1], err


@pytest.mark.parametrize(
    "way, wrapped, name",
    [
        pytest.param("flag", False, "SIGTERM", marks=pytest.mark.gate),
        ("polls", False, "SIGINT"),
        ("flag", True, "SIGINT"),
    ],
)
def test_a_rank_with_workers_of_a_dataloader_saves(launcher, stopping, way, wrapped, name):
    if not random_stops.has_torch():
        pytest.skip("needs torch")
    process, _ = stopping(way, 0.5, wrapped=wrapped, workers=2)
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert saved(launcher) == [0, 1], err
    assert "DataLoader worker" not in err
    assert not random_stops.marked(launcher.folder)


@pytest.mark.gate
def test_a_shell_with_a_trap_does_not_keep_the_signal_from_its_program(launcher):
    script = launcher.folder / "wrapper.sh"
    script.write_text(f"#!/bin/bash\ntrap 'echo bye' TERM\n{sys.executable} \"$@\"; exit $?\n")
    script.chmod(0o755)
    process = launcher.start(
        "--nproc-per-node", 1, "--no-python", script, HERE / "stopping_rank.py", launcher.folder, "handler", 0, 0
    )
    wait_until((launcher.folder / "ready-0").exists, "the rank trains")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert saved(launcher) == [0] and "bye" in out, err


@pytest.mark.parametrize(
    "way, frozen",
    [
        pytest.param("handler", "rank", marks=pytest.mark.gate),
        ("polls", "rank"),
        pytest.param("handler", "agent", marks=pytest.mark.gate),
    ],
)
def test_a_frozen_rank_or_agent_hears_the_stop(launcher, stopping, way, frozen):
    process, ranks = stopping(way, 0)
    os.kill(ranks[1] if frozen == "rank" else agent_of(process.pid), signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert saved(launcher) == [0, 1], err


# --- what ranks leave behind when they have ended well ---

UPLOAD = (
    "import os, subprocess, sys\n"
    "subprocess.Popen(['sh', '-c', 'while ! [ -e go ]; do sleep 0.05; done; echo whole > uploaded'],\n"
    "                 start_new_session=sys.argv[1] == 'session')\n"
)
DAEMON = (
    "import subprocess\n"
    "subprocess.Popen(['sh', '-c', 'echo $$ > daemon.new; mv daemon.new daemon; while :; do sleep 0.1; done'],\n"
    "                 start_new_session=True)\n"
    "import os, time\n"
    "while not os.path.exists('daemon'): time.sleep(0.01)\n"
)


@pytest.mark.parametrize("session", [pytest.param("session", marks=pytest.mark.gate), "group"])
def test_an_upload_in_the_background_is_waited_for(launcher, session):
    process = launcher.start("--nproc-per-node", 1, launcher.python(UPLOAD), session)
    line = next_line(process.stderr, "left behind")
    assert "sh -c while" in line and "--leftover-timeout" in line and "300 s" in line
    (launcher.folder / "go").touch()
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    assert (launcher.folder / "uploaded").read_text() == "whole\n"


def test_a_daemon_does_not_hold_a_run_for_ever(launcher):
    result = launcher.run("--nproc-per-node", 1, "--leftover-timeout", 0.5, launcher.python(DAEMON))
    assert result.returncode == 0, result.stderr
    pid = int((launcher.folder / "daemon").read_text())
    assert f"waiting for a process that ranks left behind: {pid} (sh -c" in result.stderr
    assert "did not end within 0.5 s (--leftover-timeout)" in result.stderr
    assert is_gone(pid)


@pytest.mark.gate
def test_with_no_time_for_leftovers_they_are_told_at_once(launcher):
    result = launcher.run("--nproc-per-node", 1, "--leftover-timeout", 0, launcher.python(DAEMON))
    assert result.returncode == 0, result.stderr
    assert "left behind" not in result.stderr


@pytest.mark.parametrize("name", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.gate)])
def test_a_signal_ends_the_wait_for_leftovers(launcher, name):
    process = launcher.start("--nproc-per-node", 1, launcher.python(DAEMON))
    next_line(process.stderr, "waiting for a process")
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, "the ranks have ended well"
    assert is_gone(int((launcher.folder / "daemon").read_text()))


# --- signals that ask for something ---


@pytest.mark.parametrize("name", [pytest.param("SIGUSR1", marks=pytest.mark.gate), "SIGUSR2"])
def test_user_signals_spare_ranks_that_do_not_handle_them(launcher, name):
    script = launcher.python(
        "import os, signal, sys, time\n"
        "if os.environ['RANK'] == '0':\n"
        f"    signal.signal(signal.{name}, lambda *_: open('asked', 'w').close())\n"
        "open('ready-' + os.environ['RANK'], 'w').close()\n"
        "while not os.path.exists('end'): time.sleep(0.01)\n"
    )
    process = launcher.start("--nproc-per-node", 2, "--preload", "none", script)
    wait_until(lambda: len(list(launcher.folder.glob("ready-?"))) == 2, "ranks are up")
    process.send_signal(getattr(signal, name))
    assert f"{name}: 1 of 2 ranks does not handle it" in next_line(process.stderr, name)
    wait_until((launcher.folder / "asked").exists, "rank 0 has it")
    (launcher.folder / "end").touch()
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, err


def test_random_stops_lose_no_save_and_leave_no_process():
    """random_stops.py says what is drawn and what has to hold; TAAS_FULL=1 makes 300 of them."""
    wrong = [f"{plan}: {line}" for plan, lines in random_stops.run_many(range(RUNS), at_once=3) for line in lines]
    assert not wrong, "\n".join(wrong)
