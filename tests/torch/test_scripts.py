"""PyTorch programs written for torchrun run unchanged under taas-run."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from waiting import DEADLINE_SECONDS

TAAS_RUN = os.environ["TAAS_RUN"]
HERE = pathlib.Path(__file__).parent
# What test_hints.py is about: none of the programs here makes such a mistake.
HINTS = re.compile(
    "trained without a process group|each used nn.DataParallel|all used GPU 0|saved to the same file|"
    "had the same samples"
)


def taas_run(folder, *arguments, **variables):
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", **variables}
    result = subprocess.run(
        [TAAS_RUN, *map(str, arguments)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert not HINTS.search(result.stderr), result.stderr
    return result


def taas_run_to_the_end(folder, *arguments, **variables):
    """Runs a script whose ranks end as Python ends.

    Before Python 3.14 a thread of torch's gloo that is still letting go of its last tensor then is unwound by Python,
    and aborts the rank: not ours to judge, and seldom, so it is run again.
    """
    for _ in range(3):
        result = taas_run(folder, *arguments, **variables)
        if "terminate called without an active exception" not in result.stderr:
            break
    return result


@pytest.mark.parametrize("ranks", [1, pytest.param(4, marks=pytest.mark.gate)])
def test_ddp_script_runs_unchanged(tmp_path, ranks):
    result = taas_run_to_the_end(tmp_path, "--nproc-per-node", ranks, HERE / "ddp_script.py", "--lr", "0.1")
    assert result.returncode == 0, result.stderr
    assert f"trained on {ranks} ranks, argv ['--lr', '0.1'], elastic True, restart 0" in result.stdout


@pytest.mark.gate
def test_exception_in_one_rank_is_the_verdict_though_others_lose_their_peer(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "dist.barrier()\n"
        "if dist.get_rank() == 2:\n"
        "    raise RuntimeError('loss is nan')\n"
        "dist.all_reduce(torch.ones(1))\n"
    )
    result = taas_run(tmp_path, "--nproc-per-node", 4, script)
    assert result.returncode == 1
    assert "rank 2 raised RuntimeError: loss is nan" in result.stderr, result.stderr
    assert re.search(r"fails\.py.*line 5", result.stderr)


@pytest.mark.gate
def test_store_of_the_launcher_survives_rank_0_and_serves_the_next_generation(tmp_path):
    script = tmp_path / "restarts.py"
    script.write_text(
        "import os, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "dist.barrier()\n"
        "if dist.get_rank() == 0 and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "    os._exit(3)\n"
        "total = torch.ones(1)\n"
        "dist.all_reduce(total)\n"
        "print('total', int(total))\n"
    )
    result = taas_run_to_the_end(tmp_path, "--nproc-per-node", 4, "--max-restarts", 1, script)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "total 4\n"


def test_what_uses_the_store_as_a_group_of_nccl_does_is_restarted(tmp_path):
    """Such a group sets no key for each rank. What ends by a signal, or with its own code, did not need the store."""
    script = tmp_path / "restarts.py"
    script.write_text(
        "import os, signal\n"
        "generation = int(os.environ['TORCHELASTIC_RESTART_COUNT'])\n"
        "if generation == 0:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "if generation == 1:\n"
        "    os._exit(3)\n"
        "import torch.distributed as dist\n"
        "store, rank, world = next(dist.rendezvous('env://'))\n"
        "if rank == 0:\n"
        "    store.set('0', 'the id of the communicator')\n"
        "store.get('0')\n"
        "if generation == 2:\n"
        "    raise RuntimeError('CUDA error: unspecified launch failure')\n"
        "print('rank', rank, 'of', world)\n"
    )
    result = taas_run(tmp_path, "--nproc-per-node", 2, "--max-restarts", 3, script)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "rank 0 of 2\n"


def test_a_rank_that_does_not_come_to_a_collective_is_named(tmp_path):
    """Over NCCL torch writes the records by itself once a call has timed out; over gloo the program has to."""
    script = tmp_path / "hangs.py"
    script.write_text(
        "import datetime, os, pathlib, signal, torch, torch.distributed as dist\n"
        "from torch._C import _distributed_c10d as c10d\n"
        "def record(*_):\n"
        "    path = os.environ['TORCH_FR_DUMP_TEMP_FILE'] + os.environ['RANK']\n"
        "    pathlib.Path(path).write_bytes(c10d._dump_fr_trace())\n"
        "def leave(*_):\n"
        "    record()\n"
        "    os._exit(0)\n"
        "signal.signal(signal.SIGTERM, leave)\n"
        "dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=10))\n"
        "gradients = torch.ones(262144)\n"
        "dist.all_reduce(gradients)\n"
        "if dist.get_rank() == 1:\n"
        "    signal.pause()\n"
        "try:\n"
        "    dist.all_reduce(gradients)\n"
        "except RuntimeError:\n"
        "    record()\n"
        "    raise\n"
    )
    result = taas_run(tmp_path, "--nproc-per-node", 3, script)
    assert result.returncode == 1, result.stderr
    assert "rank 1 did not come to all_reduce 2 (1 MB float32, hangs.py:16): ranks 0, 2 waited 10 s" in result.stderr, (
        result.stderr
    )
    assert "rank 1 last called all_reduce 1 (1 MB float32, hangs.py:12)" in result.stderr, result.stderr


def test_after_a_timeout_of_gloo_the_report_names_who_did_not_time_out(tmp_path):
    script = tmp_path / "hangs.py"
    script.write_text(
        "import datetime, signal, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "group = dist.new_group(timeout=datetime.timedelta(seconds=2))\n"
        "dist.barrier()\n"
        "if dist.get_rank() == 1:\n"
        "    signal.pause()\n"
        "dist.all_reduce(torch.ones(1), group=group)\n"
    )
    result = taas_run(tmp_path, "--nproc-per-node", 4, script)
    assert result.returncode == 1
    assert "Timed out waiting" in result.stderr
    run = (tmp_path / "taas-runs/latest").resolve().name
    hint = f"rank 1 did not time out: see what came last in taas-runs/{run}/generation-0/rank-0001.err"
    assert f"  hint: {hint}\n" in result.stderr, result.stderr


def test_a_rank_that_lost_its_peer_has_its_traceback_in_its_log_only(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(
        "import os, signal, torch, torch.distributed as dist\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "dist.init_process_group('gloo')\n"
        "dist.all_reduce(torch.ones(1))\n"
        "if dist.get_rank() == 1:\n"
        "    raise ValueError('bad shape')\n"
        "dist.all_reduce(torch.ones(1))\n"
    )
    result = taas_run_to_the_end(tmp_path, "--nproc-per-node", 2, script)
    assert "rank 1 raised ValueError: bad shape" in result.stderr
    assert "Connection closed by peer" in (tmp_path / "taas-runs/latest/generation-0/rank-0000.err").read_text()
    assert re.search(r"^taas-run: rank 0: lost its peer \(\d+ lines in its log\)$", result.stderr, re.MULTILINE)
    assert "Connection closed by peer" not in result.stderr


def test_store_on_rank_0(tmp_path):
    result = taas_run_to_the_end(tmp_path, "--nproc-per-node", 2, "--store", "rank0", HERE / "ddp_script.py")
    assert result.returncode == 0, result.stderr
    assert "trained on 2 ranks" in result.stdout


TIMED = """
import os, signal, sys, time
import torch.distributed.elastic.timer as timer
from torch.distributed.elastic.timer import FileTimerClient

path = os.environ["TORCHELASTIC_TIMER_FILE"]
timer.configure(FileTimerClient(path))
with timer.expires(after=3600, scope="done in time"):
    pass
if os.environ["RANK"] == "0" or os.environ["TORCHELASTIC_RESTART_COUNT"] == "1":
    sys.exit()
client = FileTimerClient(path)
client.acquire("a step", time.time() - 1)
signal.pause()
"""


def test_who_does_not_release_a_timer_is_killed_and_named(tmp_path):
    script = tmp_path / "timed.py"
    script.write_text(TIMED)
    result = taas_run(tmp_path, "--nproc-per-node", 2, script, TORCHELASTIC_ENABLE_FILE_TIMER="1")
    assert result.returncode == 137, result.stderr
    assert 'rank 1 was killed by SIGKILL: its timer "a step" had expired' in result.stderr, result.stderr
    again = taas_run(tmp_path, "--nproc-per-node", 2, "--max-restarts", 1, script, TORCHELASTIC_ENABLE_FILE_TIMER="1")
    assert again.returncode == 0, again.stderr


@pytest.mark.gate
def test_timers_are_served_where_the_environment_says_and_for_descendants_only(tmp_path):
    script = tmp_path / "timed.py"
    script.write_text("""
import os, signal, subprocess, sys, time
from torch.distributed.elastic.timer import FileTimerClient, FileTimerRequest

client = FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"])
child = subprocess.Popen(["sleep", "infinity"])
for pid, number in ((os.getppid(), signal.SIGKILL), (int(sys.argv[1]), signal.SIGKILL), (child.pid, signal.SIGTERM)):
    client._send_request(FileTimerRequest(pid, "ours", 1.0, number))
print(os.environ["TORCHELASTIC_TIMER_FILE"], child.wait())
""")
    place = tmp_path / "timers"
    with subprocess.Popen(["sleep", "infinity"]) as stranger:
        result = taas_run(
            tmp_path,
            "--nproc-per-node",
            1,
            script,
            stranger.pid,
            TORCHELASTIC_ENABLE_FILE_TIMER="1",
            TORCHELASTIC_TIMER_FILE=str(place),
        )
        alive = stranger.poll() is None
        stranger.kill()
    assert (result.returncode, result.stdout) == (0, f"{place} -15\n"), result.stderr
    assert alive
    assert not place.exists()
    place.write_text("mine")
    refused = taas_run(tmp_path, script, 1, TORCHELASTIC_ENABLE_FILE_TIMER="1", TORCHELASTIC_TIMER_FILE=str(place))
    assert refused.returncode == 2 and str(place) in refused.stderr and place.read_text() == "mine", refused.stderr
