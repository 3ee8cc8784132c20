"""Learning rates and momentum of all schedules are equal to Python's to the bit, over 200 steps, also where C++ goes on
from a state in their middle, its own or Python's.

usage: schedule_reference.py PYTHON_PEER
"""

import copy
import itertools
import os
import subprocess
import sys
import tempfile
import warnings
from functools import partial

import torch
from torch.optim import lr_scheduler as lr

STEPS, SAVED = 200, 77

warm_up = partial(lr.LinearLR, start_factor=0.01, total_iters=30)
steps = partial(lr.StepLR, step_size=9, gamma=0.8)
waves = partial(lr.CosineAnnealingLR, T_max=13, eta_min=0.002)
cycle = partial(lr.OneCycleLR, max_lr=0.5, total_steps=160)


def sequence(milestones, *makers):
    return lambda optimizer: lr.SequentialLR(optimizer, [make(optimizer) for make in makers], milestones)


SCHEDULES = {
    "step": partial(lr.StepLR, step_size=30, gamma=0.3),
    "linear": partial(lr.LinearLR, start_factor=0.2, end_factor=0.7, total_iters=90),
    "linear defaults": lr.LinearLR,
    "cosine": partial(lr.CosineAnnealingLR, T_max=60, eta_min=0.001),
    "cosine to zero": partial(lr.CosineAnnealingLR, T_max=200),
    "one cycle": partial(lr.OneCycleLR, max_lr=0.3, total_steps=200),
    "one cycle linear": partial(
        lr.OneCycleLR,
        max_lr=[0.3, 0.2],
        total_steps=210,
        pct_start=0.41,
        anneal_strategy="linear",
        base_momentum=0.8,
        max_momentum=0.9,
        div_factor=7,
        final_div_factor=90,
        three_phase=True,
    ),
    "one cycle without momentum": partial(lr.OneCycleLR, max_lr=0.3, total_steps=201, cycle_momentum=False),
    "warm-up then cosine": sequence([30], warm_up, partial(lr.CosineAnnealingLR, T_max=170, eta_min=0.0001)),
    "all in turn": sequence([20, 45, 70, 110], waves, steps, warm_up, waves, cycle),
    "one cycle first": sequence([50, 120], cycle, waves, steps),
    "one never": sequence([0, 60], warm_up, waves, steps),
}


def two_groups(adam):
    groups = [{"params": [torch.ones(1)]}, {"params": [torch.ones(1)], "lr": 0.025}]
    return torch.optim.Adam(groups, lr=0.1) if adam else torch.optim.SGD(groups, lr=0.1, momentum=0.9)


def seen(optimizer):
    return [
        number
        for group in optimizer.param_groups
        for number in (group["lr"], group["betas"][0] if "betas" in group else group["momentum"])
    ]


def followed(make, adam):
    """All steps, and the states of the optimizer and the scheduler after some."""
    optimizer = two_groups(adam)
    scheduler = make(optimizer)
    rows, states = [], None
    for step in range(STEPS):
        if step == SAVED:
            states = copy.deepcopy([optimizer.state_dict(), scheduler.state_dict()])
        rows.append(seen(optimizer))
        scheduler.step()
    return torch.tensor(rows, dtype=torch.float64), states


def main(peer):
    warnings.simplefilter("ignore")  # the optimizers make no steps here
    kinds = itertools.product(SCHEDULES.items(), ("SGD", "Adam"))
    theirs = {f"{name}, {kind}": followed(make, kind == "Adam") for (name, make), kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        one, two = (os.path.join(folder, name) for name in ("one.pt", "two.pt"))
        whole = {"format": "taas checkpoint", "version": 1, "epoch": 0, "model": {}, "optimizer": None}
        torch.save({**whole, "extra": {key: states for key, (_, states) in theirs.items()}}, one)
        subprocess.run([peer, "schedules", one, two], check=True)
        ours = torch.load(two, weights_only=True)["model"]
    assert len(ours) == 3 * len(theirs)
    for key, (rows, _) in theirs.items():
        for origin, first in (("", 0), (" from its own state", SAVED), (" from Python's state", SAVED)):
            got, expected = ours[key + origin], rows[first:]
            equal = (got == expected).all(dim=1)
            row = int(equal.logical_not().int().argmax())
            text = f"{key}{origin}, step {first + row}: {got[row].tolist()}, Python's {expected[row].tolist()}"
            assert equal.all(), text
    print(f"{len(SCHEDULES)} schedules are equal to Python's")


if __name__ == "__main__":
    main(sys.argv[1])
