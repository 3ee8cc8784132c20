"""Nodes meet only who knows their secret: how it is given and kept, and what strangers on the machine can do."""

import os
import socket

import pytest
from conftest import assert_ranks, free_port, join_alone
from waiting import DEADLINE_SECONDS


@pytest.mark.parametrize(
    "place",
    [
        ["--nnodes=1:2", "--rdzv-endpoint=node7:29400"],
        pytest.param(["--nnodes=2", "--rdzv-id=job8"], marks=pytest.mark.gate),
        ["--nnodes=2", "--rdzv-endpoint=localhost:29400", "--rdzv-id=job8"],
    ],
)
def test_nodes_that_meet_are_never_simulated_but_told_of_the_secret(launcher, script, touched, place):
    """In two terminals two complete runs went their way, and both ended well."""
    result = launcher.run("--nproc-per-node=1", *place, script, touched)
    assert result.returncode == 2 and "TAAS_TOKEN is not set" in result.stderr, result.stderr
    assert_ranks(touched, 0)


@pytest.mark.gate
def test_a_stranger_who_takes_names_keeps_no_agents_apart(launcher, script, touched):
    """Any local user could bind this one: both agents then waited for a coordinator until they timed out."""
    port = free_port()
    taken = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for name, addresses in zip(taken, ("127.0.0.1", "127.0.0.1 ::1", "::1 127.0.0.1")):  # as localhost resolves
        name.bind(f"\0taas-run at port {port} {addresses}")
    common = [
        "--nnodes=2",
        "--nproc-per-node=2",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{port}",
        "--rdzv-id=job8",
        "--rdzv-conf=join_timeout=20",
    ]
    agents = [launcher.start(*common, script, touched, env={"TAAS_TOKEN": "a secret of ours"}) for _ in range(2)]
    for agent in agents:
        out, err = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, err
    assert_ranks(touched, 4)


STEP = {
    "SLURM_JOB_ID": "77",
    "SLURM_JOB_NODELIST": "a,b",
    "SLURM_TASKS_PER_NODE": "1(x2)",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "a,b",
    "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
    "SLURM_NODEID": "1",
    "SLURM_LOCALID": "0",
    "SLURM_PROCID": "1",
}


@pytest.mark.parametrize("kind", [pytest.param("a pipe", marks=pytest.mark.gate), "readable", "another user's"])
def test_a_stranger_who_takes_the_meeting_place_of_a_step_is_named(launcher, kind):
    """A pipe that nobody writes to held the other nodes up for ever."""
    place = launcher.folder / ".taas-77.0.0"
    os.mkfifo(place, 0o600) if kind == "a pipe" else place.touch(0o600)
    if kind == "readable":
        place.chmod(0o644)
    elif kind == "another user's" and os.getuid() == 0:
        os.chown(place, 65534, 65534)
    elif kind == "another user's":
        pytest.skip("only root can make a file of another user's")
    result = launcher.run(
        "--nnodes=2", "--nproc-per-node=1", f"--output={launcher.folder}", "--no-python", "/bin/true", env=STEP
    )
    assert result.returncode == 2 and str(place) in result.stderr and "remove it" in result.stderr, result.stderr


@pytest.mark.gate
def test_ranks_never_see_the_token(launcher):
    program = "/usr/bin/printenv"
    alone = launcher.run("--nproc-per-node=1", "--no-python", program, env={"TAAS_TOKEN": "a secret of ours"})
    assert alone.returncode == 0 and "RANK=0" in alone.stdout and "TAAS_TOKEN" not in alone.stdout
    joined = join_alone(launcher, "--no-python", program, TAAS_TOKEN="a secret of ours")
    assert joined.returncode == 0 and "RANK=0" in joined.stdout and "TAAS_TOKEN" not in joined.stdout


@pytest.mark.parametrize(
    "mode, refused",
    [
        pytest.param(0o600, False, marks=pytest.mark.gate),
        (0o400, False),
        pytest.param(0o640, True, marks=pytest.mark.gate),
        (0o604, True),
        (0o622, True),
    ],
)
def test_a_token_file_is_the_users_alone(launcher, tmp_path, mode, refused):
    token = tmp_path / "token"
    token.write_text(launcher.run("token").stdout)
    token.chmod(mode)
    result = join_alone(launcher, "--token-file", token, "--no-python", "/bin/true")
    assert result.returncode == (2 if refused else 0), result.stderr
    if refused:
        assert str(token) in result.stderr and f"{mode:04o}" in result.stderr and "chmod 600" in result.stderr


@pytest.mark.gate
def test_a_token_is_made_and_a_weak_one_refused(launcher):
    made = [launcher.run("token") for _ in range(2)]
    assert all(result.returncode == 0 and len(result.stdout) == 65 and not result.stderr for result in made)
    assert made[0].stdout != made[1].stdout
    weak = join_alone(launcher, "--no-python", "/bin/true", TAAS_TOKEN="hunter2hunter2hunter2")
    assert weak.returncode == 2 and "taas-run token" in weak.stderr and "hunter2" not in weak.stderr
