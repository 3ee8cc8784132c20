"""Ten steps of deterministic DDP over nccl; rank 0 says the parameters' SHA-256, and all ranks that it is theirs."""

import hashlib
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic matrix products; before CUDA is used

import torch
import torch.distributed as dist
from torch import nn


def digest(module: nn.Module) -> str:
    hashed = hashlib.sha256()
    for tensor in module.state_dict().values():
        hashed.update(tensor.cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()


def main() -> None:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 26 * 26, 10)
    ).to(device)
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(10):
        images = torch.randn(32, 1, 28, 28, generator=generator).to(device)
        labels = torch.randint(10, (32,), generator=generator).to(device)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    dist.broadcast(net[1].running_mean, 0)
    dist.broadcast(net[1].running_var, 0)
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, digest(net))
    if dist.get_rank() == 0:
        print("DIGEST", everybodys[0] if len(set(everybodys)) == 1 else "differs between ranks", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
