"""nn.DataParallel, as courses teach it: one process, all GPUs that it sees; without any it is the model itself."""

import sys

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.DataParallel(nn.Linear(5, 2))
    data = torch.randn(100, 5)
    for batch in data.split(30):
        print("in", tuple(batch.shape), "out", tuple(model(batch).shape), f"{model(batch).sum().item():.6f}")
    print("arguments", sys.argv[1:], "distributed", torch.distributed.is_initialized())


if __name__ == "__main__":
    main()
