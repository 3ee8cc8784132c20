"""Learning rates and momentum of all schedules are equal to Python's to the bit, over 200 steps.

usage: schedule_reference.py PYTHON_PEER
"""

import copy
import os
import subprocess
import sys
import tempfile
import warnings

import torch
from torch.optim import lr_scheduler as lr

STEPS, SAVED = 200, 77


def warm_up(optimizer):
    return lr.LinearLR(optimizer, start_factor=0.01, total_iters=30)


def sequence(milestones, *makers):
    return lambda o: lr.SequentialLR(o, [make(o) for make in makers], milestones)


def chain(*makers):
    return lambda o: lr.ChainedScheduler([make(o) for make in makers])


def cyclic(o):
    return lr.CyclicLR(
        o,
        base_lr=[0.02, 0.01],
        max_lr=0.3,
        step_size_up=9,
        step_size_down=4,
        mode="triangular2",
        base_momentum=[0.7, 0.6],
        max_momentum=0.93,
    )


def up_and_down(o):
    return lr.MultiplicativeLR(o, lambda step: 0.95 if step % 3 else 1.05)


def restarts(o):
    return lr.CosineAnnealingWarmRestarts(o, T_0=11, T_mult=2)


SCHEDULES = {
    "lambda": lambda o: lr.LambdaLR(o, lambda step: 0.95**step),
    "lambdas": lambda o: lr.LambdaLR(o, [lambda step: 1.0 / (1 + step), lambda step: step % 7 / 7]),
    "multiplicative": up_and_down,
    "multiplicatives": lambda o: lr.MultiplicativeLR(o, [lambda step: 0.97, lambda step: (1 + step) / (2 + step)]),
    "step": lambda o: lr.StepLR(o, 30, gamma=0.3),
    "multi step": lambda o: lr.MultiStepLR(o, [20, 50, 50, 120], gamma=0.3),
    "constant": lambda o: lr.ConstantLR(o, factor=0.3, total_iters=40),
    "linear": lambda o: lr.LinearLR(o, start_factor=0.2, end_factor=0.7, total_iters=90),
    "linear defaults": lambda o: lr.LinearLR(o),
    "exponential": lambda o: lr.ExponentialLR(o, gamma=0.97),
    "polynomial": lambda o: lr.PolynomialLR(o, total_iters=150, power=1.7),
    "cosine": lambda o: lr.CosineAnnealingLR(o, T_max=60, eta_min=0.001),
    "cosine to zero": lambda o: lr.CosineAnnealingLR(o, T_max=200),
    "restarts": lambda o: lr.CosineAnnealingWarmRestarts(o, T_0=13, T_mult=2, eta_min=0.0003),
    "equal restarts": lambda o: lr.CosineAnnealingWarmRestarts(o, T_0=17),
    "one cycle": lambda o: lr.OneCycleLR(o, max_lr=0.3, total_steps=200),
    "one cycle linear": lambda o: lr.OneCycleLR(
        o,
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
    "one cycle without momentum": lambda o: lr.OneCycleLR(o, max_lr=0.3, total_steps=201, cycle_momentum=False),
    "warm-up then cosine": sequence([30], warm_up, lambda o: lr.CosineAnnealingLR(o, T_max=170, eta_min=0.0001)),
    "three in turn": sequence(
        [20, 110],
        lambda o: lr.ConstantLR(o, factor=0.1, total_iters=300),
        lambda o: lr.PolynomialLR(o, total_iters=80, power=0.9),
        lambda o: lr.CosineAnnealingWarmRestarts(o, T_0=11),
    ),
    "the others in turn": sequence(
        [10, 40, 70, 110, 150],
        lambda o: lr.ExponentialLR(o, gamma=0.9),
        lambda o: lr.StepLR(o, 9),
        lambda o: lr.MultiStepLR(o, [5, 9], 0.5),
        lambda o: lr.LinearLR(o, start_factor=0.3, end_factor=0.9, total_iters=20),
        lambda o: lr.LambdaLR(o, lambda step: 1.0 / (2 + step)),
        lambda o: lr.ConstantLR(o, factor=0.2, total_iters=8),
    ),
    "one cycle in turn": sequence(
        [50], lambda o: lr.ExponentialLR(o, gamma=0.99), lambda o: lr.OneCycleLR(o, max_lr=0.5, total_steps=160)
    ),
    "cyclic": lambda o: lr.CyclicLR(o, base_lr=0.01, max_lr=[0.3, 0.2], step_size_up=13),
    "cyclic of half the height": cyclic,
    "cyclic exponential": lambda o: lr.CyclicLR(o, 0.003, 0.1, step_size_up=7, mode="exp_range", gamma=0.987),
    "cyclic scaled by cycles": lambda o: lr.CyclicLR(o, 0.01, 0.2, 17, 30, scale_fn=lambda cycle: 1.0 / (1 + cycle)),
    "cyclic scaled by steps": lambda o: lr.CyclicLR(
        o, 0.01, 0.2, 17, 0, scale_fn=lambda step: step % 5 / 7, scale_mode="iterations", cycle_momentum=False
    ),
    "cyclic in turn": sequence([40, 90], warm_up, cyclic, up_and_down),
    "cyclic first": sequence([50], cyclic, lambda o: lr.ExponentialLR(o, gamma=0.98)),
    "sequence in a sequence": sequence(
        [60, 130],
        sequence([1, 20], warm_up, cyclic, lambda o: lr.CosineAnnealingLR(o, T_max=30)),
        lambda o: lr.StepLR(o, 30),
        restarts,
    ),
    "three sequences": sequence(
        [150], sequence([90], sequence([40], restarts, cyclic), lambda o: lr.PolynomialLR(o, 70)), up_and_down
    ),
    "chain in a sequence": sequence([50], chain(warm_up, lambda o: lr.ExponentialLR(o, gamma=0.98), restarts), cyclic),
    "sequences in a chain": chain(
        lambda o: lr.ExponentialLR(o, gamma=0.99),
        sequence([25], warm_up, lambda o: lr.StepLR(o, 40, gamma=0.5)),
        sequence([70], lambda o: lr.MultiStepLR(o, [20, 40]), up_and_down),
    ),
    "chain in a chain": chain(chain(warm_up, up_and_down), lambda o: lr.ExponentialLR(o, gamma=0.98)),
    "chained": lambda o: lr.ChainedScheduler([warm_up(o), lr.ExponentialLR(o, gamma=0.98), lr.StepLR(o, 60)]),
}
# Whose states have nothing that only Python knows.
ADOPTED = (
    "linear",
    "cosine",
    "restarts",
    "one cycle",
    "warm-up then cosine",
    "three in turn",
    "chained",
    "multiplicative",
    "cyclic",
    "cyclic of half the height",
    "cyclic in turn",
    "three sequences",
    "chain in a sequence",
    "chain in a chain",
)


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
    """All steps, and the scheduler's state after some."""
    optimizer = two_groups(adam)
    scheduler = make(optimizer)
    rows, state = [], None
    for step in range(STEPS):
        rows.append(seen(optimizer))
        scheduler.step()
        if step == SAVED:
            state = copy.deepcopy(scheduler.state_dict())
    return torch.tensor(rows, dtype=torch.float64), state


def check_rates(peer, path):
    subprocess.run([peer, "schedules", path], check=True)
    ours = torch.load(path, weights_only=True)["model"]
    assert len(ours) == 2 * len(SCHEDULES)
    for name, make in SCHEDULES.items():
        for adam in (False, True):
            key = f"{name}, {'Adam' if adam else 'SGD'}"
            theirs, _ = followed(make, adam)
            wrong = (theirs != ours[key]).any(dim=1).nonzero().flatten().tolist()
            assert not wrong, (
                f"{key}: step {wrong[0]} has {ours[key][wrong[0]].tolist()}, Python's {theirs[wrong[0]].tolist()}"
            )


def check_states(peer, one, two):
    """C++ goes on from Python's states."""
    runs = {name: followed(SCHEDULES[name], False) for name in ADOPTED}
    torch.save(
        {
            "format": "taas checkpoint",
            "version": 1,
            "epoch": 0,
            "model": {},
            "optimizer": None,
            "extra": {name: state for name, (_, state) in runs.items()},
        },
        one,
    )
    subprocess.run([peer, "adopt-schedules", one, two], check=True)
    ours = torch.load(two, weights_only=True)["model"]
    for name, (rows, _) in runs.items():
        assert torch.equal(ours[name], rows[SAVED + 2 : SAVED + 12]), f"{name} does not go on from Python's state"


def main(peer):
    warnings.simplefilter("ignore")  # the optimizers make no steps here
    with tempfile.TemporaryDirectory() as folder:
        one, two = (os.path.join(folder, name) for name in ("one.pt", "two.pt"))
        check_rates(peer, one)
        check_states(peer, one, two)
    print(f"{len(SCHEDULES)} schedules are equal to Python's")


if __name__ == "__main__":
    main(sys.argv[1])
