"""For each pair of GPUs of this machine: whether they reach each other's memory, and how fast and right a copy is.

Written as JSON.
"""

import json

import torch

BYTES, COPIES = 256 << 20, 10


def pair(source: int, target: int) -> dict:
    here = torch.arange(BYTES // 4, device=f"cuda:{source}", dtype=torch.int32)
    there = torch.empty_like(here, device=f"cuda:{target}")
    there.copy_(here)
    right = torch.equal(there.cpu(), here.cpu())
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.device(source):
        torch.cuda.synchronize(target)
        begin.record()
        for _ in range(COPIES):
            there.copy_(here, non_blocking=True)
        end.record()
        end.synchronize()
    rate = COPIES * BYTES / (begin.elapsed_time(end) / 1e3) / 1e9
    return {
        "from": source,
        "to": target,
        "peers": torch.cuda.can_device_access_peer(source, target),
        "right": right,
        "gigabytes_per_second": rate,
    }


count = torch.cuda.device_count()
print(json.dumps([pair(source, target) for source in range(count) for target in range(count) if source != target]))
