"""The network of apps/train in plain Python, data on the GPU: says samples a second of all ranks for each epoch."""

import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

IMAGES, BATCH, EPOCHS = 8000, 64, 6


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.dropout1, self.dropout2 = nn.Dropout2d(0.25), nn.Dropout(0.5)
        self.fc1, self.batchnorm, self.fc2 = nn.Linear(9216, 128), nn.BatchNorm1d(128), nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv1(x).relu_()
        x = F.max_pool2d(self.conv2(x), 2).relu_()
        x = self.dropout1(x).flatten(1)
        x = self.batchnorm(self.fc1(x)).relu_()
        return F.log_softmax(self.fc2(self.dropout2(x)), 1)


def main() -> None:
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    if ranks > 1:
        dist.init_process_group("nccl", device_id=device)
    network = Network().to(device)
    model = nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True) if ranks > 1 else network
    optimizer = torch.optim.Adadelta(network.parameters(), lr=1.0)
    images = torch.randint(0, 255, (IMAGES, 1, 28, 28), dtype=torch.uint8).to(device)
    labels = torch.randint(0, 10, (IMAGES,)).to(device)
    for _ in range(EPOCHS):
        order = torch.randperm(IMAGES)[rank::ranks].to(device)
        torch.cuda.synchronize()
        began = time.time()
        for chosen in order.split(BATCH):
            batch = images.index_select(0, chosen).float().div_(255).sub_(0.13).div_(0.3)
            optimizer.zero_grad(set_to_none=ranks == 1)
            F.nll_loss(model(batch), labels.index_select(0, chosen)).backward()
            optimizer.step()
        torch.cuda.synchronize()
        if rank == 0:
            print(f"{IMAGES / (time.time() - began):.0f} samples/s", flush=True)
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
