"""One process that starts workers of its own, as PyTorch's tutorials do: spawn_workers.py WAY [PORT].

WAY is own (a port of the program's own), given (what is in the environment) or rpc. With a PORT the workers stay until
they are stopped, as those of a long training do.
"""

import datetime
import os
import signal
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed import rpc

SECONDS = 600  # as in conftest.py: only a hang takes so long


def reduce(rank: int, world_size: int) -> int:
    dist.init_process_group("gloo", rank=rank, world_size=world_size, timeout=datetime.timedelta(seconds=SECONDS))
    total = torch.tensor(rank + 1)
    dist.all_reduce(total)
    dist.destroy_process_group()
    return total.item()


def call(rank: int, world_size: int) -> int:
    options = rpc.TensorPipeRpcBackendOptions(rpc_timeout=SECONDS)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size, rpc_backend_options=options)
    answers = [rpc.rpc_sync(f"worker{other}", int, (other + 1,)) for other in range(world_size)]
    rpc.shutdown()
    return sum(answers)


def work(rank: int, way: str, port: str, stay: bool):
    if way != "given":
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=port)
    total = call(rank, 3) if way == "rpc" else reduce(rank, 3)
    if rank == 0:
        print("total", total, flush=True)
    if stay:
        signal.pause()


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", free_port())
    way, *fixed = sys.argv[1:]
    mp.spawn(work, (way, *(fixed or [free_port()]), bool(fixed)), nprocs=3)
