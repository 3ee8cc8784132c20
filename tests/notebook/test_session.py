"""Cells whose ranks come from the kernel's own session."""

import json
import os
import pathlib
import time

DEADLINE_SECONDS = 180
CELL = """%%taas --gpus 2
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * factor
dist.all_reduce(total)
print("total", total.item())
"""


def wait_until(condition, what):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not in time"
        time.sleep(0.01)


def sessions(kernel) -> list:
    return [pid for pid in kernel.processes() if "taas-session" in pathlib.Path(f"/proc/{pid}/comm").read_text()]


def last_run(folder) -> tuple:
    """The launcher's command, and whether each rank came out of an interpreter that was there."""
    journal = [json.loads(line) for line in (folder / "taas-runs/latest/journal.jsonl").read_text().splitlines()]
    started = next(event for event in journal if event.get("event") == "run_started")
    return started["record"]["command"], [event["preloaded"] for event in journal if event.get("event") == "rank_spawned"]


def test_a_session_that_is_asked_for(new_kernel, tmp_path):
    kernel = new_kernel()
    assert " is ready: torch, torch._dynamo in " in kernel.run("%taas warm 2").check().stream()
    for factor in (1, 2, 3):
        done = kernel.run(f"factor = {factor}").check() and kernel.run(CELL).check()
        assert f"total {2 * factor}.0" in done.stream() and "does not fit" not in done.stream() + done.stream("stderr")
        command, preloaded = last_run(tmp_path)
        assert "--in" in command and preloaded == [True, True]
    assert kernel.run("%taas warm").check().stream().startswith(f"kernel-{kernel.pid}-1  torch, torch._dynamo in ")
    failed = kernel.run("%%taas --gpus 2\nimport torch\n1 / 0")
    assert failed.error["ename"] == "RankFailed" and "ZeroDivisionError" in failed.traceback
    assert "no session" in kernel.run("%taas warm off").check().stream()
    kernel.wait_for_no_process()
    assert "total 6.0" in kernel.run(CELL).check().stream() and "--in" not in last_run(tmp_path)[0]


def test_the_first_cell_with_torch_makes_one(new_kernel, tmp_path):
    kernel = new_kernel(warm=True)
    kernel.run("%%taas --gpus 2\nprint('plain')").check()
    assert sessions(kernel) == []
    kernel.run("factor = 1").check()
    assert "total 2.0" in kernel.run(CELL).check().stream() and "--in" not in last_run(tmp_path)[0]
    wait_until(lambda: "idle for" in kernel.run("%taas warm").check().stream(), "the session is ready")
    assert "total 2.0" in kernel.run(CELL).check().stream() and "--in" in last_run(tmp_path)[0]


def test_it_ends_with_the_kernel(new_kernel):
    kernel = new_kernel()
    kernel.run("%taas warm 2").check()
    assert sessions(kernel)
    os.kill(kernel.pid, 9)
    kernel.wait_for_no_process()


def test_a_number_that_is_none(new_kernel):
    kernel = new_kernel()
    assert "many: not a number" in kernel.run("%taas warm many").traceback
    assert "--nproc-per-node 0" in kernel.run("%taas warm 0").traceback
