"""Scripts that name the place of the store themselves: what torchrun does with them, taas-run does."""

import contextlib
import os
import signal
import socket
import subprocess

import pytest
from conftest import DEADLINE_SECONDS, TAAS_RUN, need

SCRIPT = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method=sys.argv[1], rank=int(os.environ["RANK"]),
                        world_size=int(os.environ["WORLD_SIZE"]))
total = torch.tensor(int(os.environ["RANK"]) + 1)
dist.all_reduce(total)
open(f"{os.environ['REPORTS']}/{os.environ['RANK']}", "w").write(f"{total.item()} {os.environ['MASTER_PORT']}")
dist.destroy_process_group()
"""
LAUNCHERS = {"torchrun": ("python", "-m", "torch.distributed.run"), "taas-run": (TAAS_RUN,)}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def run_on_two_nodes(runner, launcher, *arguments):
    """The same command for both nodes of this machine; their output when both have ended well."""
    environment = {**runner.environment, "TAAS_TOKEN": "a secret of this test alone"}
    with contextlib.ExitStack() as stack:
        agents = []
        for node in range(2):
            command = [*launcher, "--nnodes=2", f"--node-rank={node}", "--nproc-per-node=1", *map(str, arguments)]
            agents.append(
                subprocess.Popen(
                    command,
                    cwd=runner.folder,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    start_new_session=True,
                )
            )
            stack.callback(end, agents[-1])
        for agent in agents:
            said, _ = agent.communicate(timeout=DEADLINE_SECONDS)
            assert agent.returncode == 0, said


def end(agent):
    if agent.poll() is None:
        os.killpg(agent.pid, signal.SIGTERM)
        agent.wait()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_given_address_and_port_are_the_store_s(runner, launcher, host):
    need("torch")
    script = runner.folder / "named.py"
    script.write_text(SCRIPT)
    port = free_port()
    run_on_two_nodes(
        runner, LAUNCHERS[launcher], "--master-addr=localhost", f"--master-port={port}", script, f"tcp://{host}:{port}"
    )
    assert [(runner.reports / str(rank)).read_text() for rank in range(2)] == [f"3 {port}"] * 2


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_it_is_on_one_node_too(runner, launcher):
    need("torch")
    script = runner.folder / "named.py"
    script.write_text(SCRIPT)
    port = free_port()
    given = (
        "--nproc-per-node=2",
        "--master-addr=localhost",
        f"--master-port={port}",
        script,
        f"tcp://localhost:{port}",
    )
    result = (runner.torchrun if launcher == "torchrun" else runner.taas_run)(*given)
    assert result.returncode == 0, result.stderr
    assert [(runner.reports / str(rank)).read_text() for rank in range(2)] == [f"3 {port}"] * 2
