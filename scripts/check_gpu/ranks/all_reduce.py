"""Time of all_reduce by size, one JSON line for each: sum of float32 over all ranks, in place.

BYTES: sizes, comma-separated.
"""

import json
import os

import torch
import torch.distributed as dist

WARM_UP, MEASURED = 5, 20


def seconds(tensor: torch.Tensor) -> float:
    for _ in range(WARM_UP):
        dist.all_reduce(tensor)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    dist.barrier()
    begin.record()
    for _ in range(MEASURED):
        dist.all_reduce(tensor)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / MEASURED


def is_right(size: int, device: torch.device) -> bool:
    ranks = dist.get_world_size()
    tensor = torch.arange(size, device=device, dtype=torch.float32).remainder_(1000) + dist.get_rank()
    dist.all_reduce(tensor)
    wanted = torch.arange(size, device=device, dtype=torch.float32).remainder_(1000) * ranks + ranks * (ranks - 1) / 2
    return torch.equal(tensor, wanted)


def main() -> None:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    for size in map(int, os.environ["BYTES"].split(",")):
        right = torch.tensor(is_right(size // 4, device), device=device, dtype=torch.int32)
        dist.all_reduce(right, op=dist.ReduceOp.MIN)
        took = torch.tensor(seconds(torch.zeros(size // 4, device=device)), device=device)
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        if dist.get_rank() == 0:
            print(json.dumps({"bytes": size, "seconds": took.item(), "right": bool(right.item())}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
