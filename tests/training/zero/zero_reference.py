"""Python reads what a sharded optimizer of C++ has saved: the files of its ranks, which together are the whole state,
and that state, which Python's ZeroRedundancyOptimizer takes.

usage: zero_reference.py PYTHON_PEER
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from free_port import free_port

RANKS = 2


def start_rank(peer, rank, port, arguments):
    environment = {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(RANKS),
        "LOCAL_WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    environment.pop("TORCHELASTIC_USE_AGENT_STORE", None)
    return subprocess.Popen([peer, "zero", *arguments], env=environment)


def main(peer):
    with tempfile.TemporaryDirectory() as folder:
        parts, whole = os.path.join(folder, "parts"), os.path.join(folder, "whole.pt")
        port = free_port()
        ranks = [start_rank(peer, rank, port, (parts, whole)) for rank in range(RANKS)]
        assert [rank.wait() for rank in ranks] == [0] * RANKS
        saved = torch.load(whole, weights_only=True)
        expected = saved["optimizer"]
        files = [torch.load(os.path.join(parts, f"optimizer-{rank}.pt"), weights_only=True) for rank in range(RANKS)]
    together = {}
    for rank, file in enumerate(files):
        assert file["epoch"] == 3 and file["extra"] == {**files[0]["extra"], "world_size": RANKS}, (rank, file["extra"])
        assert file["optimizer"]["param_groups"] == expected["param_groups"] and file["optimizer"]["state"]
        assert not together.keys() & file["optimizer"]["state"].keys(), "a parameter has two owners"
        together |= file["optimizer"]["state"]
    assert together.keys() == expected["state"].keys() == set(range(len(expected["param_groups"][0]["params"])))
    for index, state in expected["state"].items():
        assert all(torch.equal(together[index][name], state[name]) for name in ("exp_avg", "exp_avg_sq")), index

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    model.load_state_dict(saved["model"])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.5)
    optimizer.load_state_dict(expected)
    assert optimizer.param_groups[0]["lr"] == 0.01
    optimizer.consolidate_state_dict()
    for index, state in optimizer.state_dict()["state"].items():
        assert torch.equal(state["exp_avg"], expected["state"][index]["exp_avg"]), index
    dist.destroy_process_group()
    print("Python reads the files of a sharded optimizer")


if __name__ == "__main__":
    main(sys.argv[1])
