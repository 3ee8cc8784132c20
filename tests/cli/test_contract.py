"""The environment that every rank is given, and programs of each kind."""

import json
import os

import pytest
from conftest import RANK_PROGRAM
from waiting import DEADLINE_SECONDS

DUMP = "import json, os, sys\nprint(json.dumps({**os.environ, 'argv': sys.argv}), flush=True)\n"


def environments(launcher, *arguments, env=None, ranks):
    script = launcher.python(DUMP)
    result = launcher.run(*arguments, script, "--lr", "0.1", env=env)
    assert result.returncode == 0, result.stderr
    folder = launcher.run_folder() / "generation-0"
    return [json.loads((folder / f"rank-{rank:04}.out").read_text()) for rank in range(ranks)]


@pytest.mark.gate
def test_one_process_has_its_port_to_itself(launcher):
    script = launcher.python(
        "import os, socket\n"
        "socket.create_server(('127.0.0.1', int(os.environ['MASTER_PORT']))).close()\n"
        "print(os.environ['TORCHELASTIC_USE_AGENT_STORE'])\n"
    )
    result = launcher.run(script)
    assert (result.returncode, result.stdout) == (0, "False\n"), result.stderr


@pytest.mark.gate
def test_two_simulated_nodes(launcher):
    result = environments(launcher, "--gpus", 12, ranks=12)
    for rank, values in enumerate(result):
        expected = {
            "RANK": rank,
            "WORLD_SIZE": 12,
            "LOCAL_RANK": rank % 6,
            "LOCAL_WORLD_SIZE": 6,
            "GROUP_RANK": rank // 6,
            "NODE_RANK": rank // 6,
            "ROLE_RANK": rank,
            "ROLE_WORLD_SIZE": 12,
            "ROLE_NAME": "default",
            "LOCAL_SIZE": 6,
            "CROSS_RANK": rank // 6,
            "CROSS_SIZE": 2,
            "MASTER_ADDR": "127.0.0.1",
            "TORCHELASTIC_RESTART_COUNT": 0,
            "TORCHELASTIC_MAX_RESTARTS": 0,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": 1,
        }
        for name, value in expected.items():
            assert values[name] == str(value), (rank, name, values.get(name))
        assert values["argv"][1:] == ["--lr", "0.1"], "options after the program belong to the program"
        for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "TAAS_OUTPUT_DIR", "OMP_NUM_THREADS"):
            assert values[name], name
    assert len({values["MASTER_PORT"] for values in result}) == 1


@pytest.mark.gate
def test_threads_are_left_alone_when_the_user_chose(launcher):
    values = environments(launcher, "--nproc-per-node", 2, env={"OMP_NUM_THREADS": "5"}, ranks=2)
    assert {v["OMP_NUM_THREADS"] for v in values} == {"5"}


@pytest.mark.gate
def test_pet_variable_is_a_default_and_a_flag_wins(launcher):
    assert environments(launcher, ranks=2, env={"PET_NPROC_PER_NODE": "2"})[0]["WORLD_SIZE"] == "2"
    assert (
        environments(launcher, "--nproc_per_node=3", ranks=3, env={"PET_NPROC_PER_NODE": "2"})[0]["WORLD_SIZE"] == "3"
    )


@pytest.mark.gate
def test_module_and_plain_executable(launcher):
    (launcher.folder / "tool.py").write_text("import os\nprint('module', os.environ['RANK'])\n")
    result = launcher.run("--nproc-per-node", 1, "-m", "tool", env={"PYTHONPATH": str(launcher.folder)})
    assert result.stdout == "module 0\n"
    assert launcher.run("--nproc-per-node", 1, RANK_PROGRAM, "*=print:binary").stdout == "binary\n"


@pytest.mark.gate
def test_local_rank_in_the_arguments(launcher):
    launcher.run("--nproc-per-node", 2, RANK_PROGRAM, "*=print:dev ${local_rank} $$ ${other}")
    folder = launcher.run_folder() / "generation-0"
    assert [(folder / f"rank-000{rank}.out").read_text() for rank in range(2)] == [
        "dev 0 $$ ${other}\n",
        "dev 1 $$ ${other}\n",
    ]


@pytest.mark.gate
def test_config_file(launcher):
    (launcher.folder / "taas.toml").write_text('nproc-per-node = "3"\nmax-restarts = 2\n')
    values = environments(launcher, "--config", "taas.toml", ranks=3)
    assert values[0]["WORLD_SIZE"] == "3" and values[0]["TORCHELASTIC_MAX_RESTARTS"] == "2"


@pytest.mark.gate
def test_standard_input_is_for_rank_0(launcher):
    script = launcher.python("import os, sys\nprint(os.environ['RANK'], repr(sys.stdin.read()))\n")
    process = launcher.start("--nproc-per-node", 2, script)
    process.communicate(timeout=DEADLINE_SECONDS)
    folder = launcher.run_folder() / "generation-0"
    assert (folder / "rank-0001.out").read_text() == "1 ''\n"


@pytest.mark.gate
def test_leftover_launcher_variables_do_not_leak(launcher):
    values = environments(
        launcher, "--nproc-per-node", 1, env={"RANK": "7", "WORLD_SIZE": "9", "LOCAL_RANK": "3"}, ranks=1
    )
    assert (values[0]["RANK"], values[0]["WORLD_SIZE"], values[0]["LOCAL_RANK"]) == ("0", "1", "0")
    assert os.environ.get("TAAS_OUTPUT_DIR") != values[0]["TAAS_OUTPUT_DIR"]
