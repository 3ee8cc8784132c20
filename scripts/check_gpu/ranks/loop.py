"""A DDP loop over nccl that fails on purpose: FAULT=kind@rank@step (kill, segv, raise, exit, oom, assert, skip).

STEPS: how many; PG_TIMEOUT: seconds of the group's timeout. Says when the fault happens and when each generation's
first step is done, in seconds of time.time().
"""

import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

GENERATION = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def fail(kind: str) -> None:
    print(f"FAULT {time.time():.3f}", flush=True)
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif kind == "raise":
        raise ValueError("bad sample 17")
    elif kind == "exit":
        sys.exit(7)
    elif kind == "oom":
        torch.empty(1 << 42, device="cuda")
    elif kind == "assert":
        torch.zeros(4, device="cuda")[torch.tensor([9], device="cuda")]
        torch.cuda.synchronize()
    elif kind == "skip":
        time.sleep(1000)


def main() -> None:
    kind, rank, step = os.environ.get("FAULT", "none@-1@-1").split("@")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    timeout = datetime.timedelta(seconds=float(os.environ.get("PG_TIMEOUT", "600")))
    dist.init_process_group("nccl", timeout=timeout, device_id=device)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for number in range(int(os.environ.get("STEPS", "40"))):
        if (dist.get_rank(), number, GENERATION) == (int(rank), int(step), 0):
            fail(kind)
        optimizer.zero_grad()
        model(torch.randn(64, 512, device=device)).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        if number == 0:
            print(f"FIRST {GENERATION} {time.time():.3f}", flush=True)
    if dist.get_rank() == 0:
        print(f"FINISHED {dist.get_world_size()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
