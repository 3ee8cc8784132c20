"""Scripts that name the place of the store themselves, as they may below torchrun."""

import contextlib
import os
import signal
import subprocess

import pytest
from conftest import DEADLINE_SECONDS, TAAS_RUN, free_port, need

SCRIPT = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method=sys.argv[1], rank=int(os.environ["RANK"]),
                        world_size=int(os.environ["WORLD_SIZE"]))
total = torch.tensor(int(os.environ["RANK"]) + 1)
dist.all_reduce(total)
open(f"{os.environ['REPORTS']}/{os.environ['RANK']}", "w").write(f"{total.item()} {os.environ['MASTER_PORT']}")
dist.destroy_process_group()
"""


def run_on_two_nodes(runner, *arguments):
    """The same command for both nodes of this machine; their output when both have ended well."""
    environment = {**runner.environment, "TAAS_TOKEN": "a secret of this test alone"}
    with contextlib.ExitStack() as stack:
        agents = []
        for node in range(2):
            command = [TAAS_RUN, "--nnodes=2", f"--node-rank={node}", "--nproc-per-node=1", *map(str, arguments)]
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
def test_the_given_address_and_port_are_the_store_s(runner, host):
    need("torch")
    script = runner.folder / "named.py"
    script.write_text(SCRIPT)
    port = free_port()
    run_on_two_nodes(runner, "--master-addr=localhost", f"--master-port={port}", script, f"tcp://{host}:{port}")
    assert [(runner.reports / str(rank)).read_text() for rank in range(2)] == [f"3 {port}"] * 2


def test_it_is_on_one_node_too(runner):
    need("torch")
    script = runner.folder / "named.py"
    script.write_text(SCRIPT)
    port = free_port()
    result = runner.taas_run(
        "--nproc-per-node=2", "--master-addr=localhost", f"--master-port={port}", script, f"tcp://localhost:{port}"
    )
    assert result.returncode == 0, result.stderr
    assert [(runner.reports / str(rank)).read_text() for rank in range(2)] == [f"3 {port}"] * 2
