"""One process that starts workers of its own, as PyTorch's tutorials do: with a port of its own, or with what it was given."""

import datetime
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank: int, world_size: int, port: str):
    if port:
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size, timeout=datetime.timedelta(seconds=30))
    total = torch.tensor(rank + 1)
    dist.all_reduce(total)
    if rank == 0:
        print("total", total.item())
    dist.destroy_process_group()


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


if __name__ == "__main__":
    given = sys.argv[1] == "given"
    if given:
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", free_port())
    mp.spawn(work, (3, "" if given else free_port()), nprocs=3)
