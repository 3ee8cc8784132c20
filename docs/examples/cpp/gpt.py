"""The program of gpt.cpp in Python: each goes on from the other's checkpoint, to the bit.

Quickstart's environment has all that it needs. A text, a checkpoint and a number of steps:

    taas-run --nproc-per-node 2 gpt.py gpt.py gpt.pt 8
"""

import contextlib
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

BYTES, WIDTH, HEADS, BLOCKS, LENGTH, BATCH = 256, 32, 2, 2, 32, 4
ACCUMULATED, SCHEDULED = 2, 100
DROPOUT, RATE, DECAY, LARGEST_NORM = 0.1, 3e-3, 0.1, 1.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.mixed = nn.Linear(WIDTH, 3 * WIDTH)
        self.joined = nn.Linear(WIDTH, WIDTH)
        self.between = nn.LayerNorm(WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        heads = self.mixed(self.before(x)).view(x.size(0), x.size(1), 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        h = x + self.joined(attended.transpose(1, 2).reshape(x.shape))
        return h + F.dropout(self.narrow(F.gelu(self.wide(self.between(h)))), DROPOUT, self.training)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(BYTES, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.last = nn.LayerNorm(WIDTH)
        self.head = self.words.weight
        for i in range(BLOCKS):
            setattr(self, f"block{i}", Block())

    def forward(self, text):
        x = self.words(text) + self.places(torch.arange(text.size(1)))
        for i in range(BLOCKS):
            x = checkpoint(getattr(self, f"block{i}"), x, use_reentrant=False)
        return F.linear(self.last(x), self.head)


def rows_of(text, number):
    begins = (row * 7919 % (text.numel() - LENGTH) for row in range(number * BATCH, (number + 1) * BATCH))
    return torch.stack([text[begin : begin + LENGTH + 1] for begin in begins])


def make_optimizer(net):
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": DECAY},
              {"params": [p for p in net.parameters() if p.dim() <= 1], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=RATE)


def random_states(ranks):
    states = [torch.empty_like(torch.get_rng_state()) for _ in range(ranks)]
    dist.all_gather(states, torch.get_rng_state())
    return {"cpu": states}


def main(text_path, path, steps):
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    with open(text_path, "rb") as file:
        text = torch.tensor(list(file.read()))
    torch.manual_seed(1)
    net = Gpt()
    torch.manual_seed(100 + rank)
    model = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
    optimizer = make_optimizer(net)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=SCHEDULED)
    step = 0
    if os.path.exists(path):
        saved = torch.load(path, weights_only=True)
        net.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["extra"]["schedule"])
        torch.set_rng_state(saved["random"]["cpu"][rank])
        step = saved["epoch"]
    for step in range(step, step + steps):
        optimizer.zero_grad()
        for i in range(ACCUMULATED):
            with model.no_sync() if i + 1 < ACCUMULATED else contextlib.nullcontext():
                rows = rows_of(text, (step * ACCUMULATED + i) * ranks + rank)
                scores = model(rows[:, :LENGTH].contiguous())
                (F.cross_entropy(scores.flatten(0, 1), rows[:, 1:].reshape(-1)) / ACCUMULATED).backward()
        nn.utils.clip_grad_norm_(net.parameters(), LARGEST_NORM)
        optimizer.step()
        schedule.step()
    random = random_states(ranks)
    if rank == 0:
        torch.save({"format": "taas checkpoint", "version": 1, "epoch": step + 1, "model": net.state_dict(),
                    "optimizer": optimizer.state_dict(), "extra": {"schedule": schedule.state_dict()}, "random": random}, path)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
