"""The program of resnet.cpp in Python: each goes on from the other's checkpoint, to the bit where images are PNG.

    pip install -c scripts/requirements.txt torchvision      # beyond quickstart's environment, with its torch

A folder of train/CLASS and val/CLASS with images, a checkpoint, a number of epochs, and the side of the images where it is not 224:

    taas-run --nproc-per-node 2 resnet.py images resnet.pt 1
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.models import resnet18

BATCH = 4
RATE, MOMENTUM, DECAY, FACTOR = 0.01, 0.9, 1e-4, 0.1
EPOCHS_OF_RATE = 30


def images_of(folder, size):
    return ImageFolder(folder, transforms.Compose([
        transforms.ToTensor(), transforms.Resize(size * 8 // 7), transforms.CenterCrop(size),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]))


def loader_of(images, *, shuffle):
    sampler = DistributedSampler(images, shuffle=shuffle)
    own = torch.Generator()  # a loader of PyTorch draws a number in each epoch, by default of the rank's own generator
    return DataLoader(images, BATCH, sampler=sampler, generator=own)


def some_mirrored(images):
    chosen = torch.rand(images.size(0)) < 0.5
    return torch.where(chosen.view(-1, 1, 1, 1), images.flip(3), images)


def accuracy_of(net, loader):
    net.eval()
    counts = torch.zeros(2, dtype=torch.int64)
    with torch.no_grad():
        for images, labels in loader:
            counts += torch.tensor([(net(images).argmax(1) == labels).sum(), len(labels)])
    net.train()
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def random_states(ranks):
    states = [torch.empty_like(torch.get_rng_state()) for _ in range(ranks)]
    dist.all_gather(states, torch.get_rng_state())
    return {"cpu": states}


def main(folder, path, epochs, size):
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    images = images_of(os.path.join(folder, "train"), size)
    loader = loader_of(images, shuffle=True)
    val_loader = loader_of(images_of(os.path.join(folder, "val"), size), shuffle=False)
    torch.manual_seed(1)
    net = resnet18(num_classes=len(images.classes))
    torch.manual_seed(100 + rank)
    model = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, EPOCHS_OF_RATE, FACTOR)
    epoch = 0
    if os.path.exists(path):
        saved = torch.load(path, weights_only=True)
        net.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["extra"]["schedule"])
        torch.set_rng_state(saved["random"]["cpu"][rank])
        epoch = saved["epoch"]
    for epoch in range(epoch, epoch + epochs):
        loader.sampler.set_epoch(epoch)
        for batch, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(some_mirrored(batch)), labels)
            loss.backward()
            optimizer.step()
        schedule.step()
        random = random_states(ranks)
        if rank == 0:
            torch.save({"format": "taas checkpoint", "version": 1, "epoch": epoch + 1, "model": net.state_dict(),
                        "optimizer": optimizer.state_dict(), "extra": {"schedule": schedule.state_dict()}, "random": random}, path)
        accuracy = accuracy_of(net, val_loader)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {loss.item():g}, {accuracy:g} right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 224)
