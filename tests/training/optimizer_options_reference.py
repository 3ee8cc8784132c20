"""Every option of every optimizer of Python's is taken over by the one of the same name in C++, or refused by its name; and
the state of another kind of optimizer is refused.

usage: optimizer_options_reference.py PYTHON_PEER
"""

import os
import subprocess
import sys
import tempfile

import torch
from torch import optim

KINDS = {"sgd": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW, "rmsprop": optim.RMSprop, "adagrad": optim.Adagrad,
         "adadelta": optim.Adadelta, "lbfgs": optim.LBFGS}
# How it is computed, which a state says nothing about.
HOW = {"foreach", "fused", "capturable", "differentiable"}
OTHER = {"lr": 0.25, "betas": (0.5, 0.75), "eps": 0.5, "weight_decay": 0.125, "momentum": 0.5, "dampening": 0.25,
         "alpha": 0.5, "rho": 0.5, "lr_decay": 0.5, "initial_accumulator_value": 0.5, "max_iter": 3, "max_eval": 4,
         "tolerance_grad": 0.5, "tolerance_change": 0.5, "history_size": 3, "line_search_fn": "strong_wolfe"}


def model():
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))


def state_of(kind, **changed):
    """As Python saves it, with other options than the defaults."""
    optimizer = kind(model().parameters())
    for group in optimizer.param_groups:
        group.update(changed)
    return optimizer.state_dict()


def cases_of(kind):
    """The options of a kind with other values, and whether they have to be refused."""
    options = {name: value for name, value in optim_defaults(kind).items()}
    own = {name for name in options if name in OTHER}
    for name, value in options.items():
        if name in OTHER:
            yield {name: OTHER[name]}, None
        elif isinstance(value, bool) or value is None:
            may = name in HOW or name in ("nesterov", "centered", "amsgrad")
            yield {name: not value}, None if may else f"{name} = {not value}"
        else:
            yield {name: value}, name
    assert own, f"{kind}: no option is known"
    yield {"cautious": True}, "cautious = True"  # an option that there may be one day
    yield {"cautious": False}, None
    yield {"name": "decoder", "initial_lr": 0.1, "param_names": ["a"]}, None


def optim_defaults(kind):
    return kind(model().parameters()).defaults


def answers(peer, name, states):
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{number}.pt") for number in range(len(states))]
        for path, state in zip(paths, states):
            torch.save(state, path)
        done = subprocess.run([peer, "try-states", name, *paths], check=True, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(states), done.stdout
    return lines


def check_options(peer):
    count = 0
    for name, kind in KINDS.items():
        cases = list(cases_of(kind))
        for (changed, refused), line in zip(cases, answers(peer, name, [state_of(kind, **changed) for changed, _ in cases])):
            count += 1
            if refused is None:
                assert line == "ok", f"{name} with {changed}: {line}"
            else:
                assert line.startswith(f"parameter group 0 of the checkpoint has {refused}, which this optimizer"), (
                    f"{name} with {changed}: {line}")
    adam = state_of(optim.Adam, decoupled_weight_decay=True)
    assert "load it into AdamW" in answers(peer, "adam", [adam])[0]
    return count


def check_other_kinds(peer):
    others = [kind for kind in vars(optim).values()
              if isinstance(kind, type) and issubclass(kind, optim.Optimizer) and kind is not optim.Optimizer]
    matrices = [kind for kind in others if kind.__name__ == "Muon"]
    states = {kind: state_of(kind) for kind in others if kind not in matrices}
    for name, own in KINDS.items():
        for other, line in zip(states, answers(peer, name, list(states.values()))):
            assert (line == "ok") == (other is own), f"{other.__name__} into {name}: {line}"
    return len(states)


def main(peer):
    count = check_options(peer)
    kinds = check_other_kinds(peer)
    print(f"{count} options of {len(KINDS)} optimizers, and states of {kinds} kinds in each of them")


if __name__ == "__main__":
    main(sys.argv[1])
