"""Optimizers of libtorch, and Adadelta of libtaas, beside Python's with foreach=False: how far parameters and states
differ after 50 steps, and that it is no more than docs/cpp says. C++ takes options and state from Python after the
first step, and Python those of C++ for one more at the end. Prints the table.

usage: optimizer_reference.py PYTHON_PEER
"""

import math
import os
import subprocess
import sys
import tempfile

import torch
from torch import optim
from trained_model import Trained

STEPS = 50
# Options, and the largest difference of parameters that may be there, a tenth of that of states; 0: equal to the bit.
# Where options are Python's own, whole numbers are among them.
OPTIMIZERS = {
    "sgd": (optim.SGD, {"lr": 0.001}, 0),
    "sgd momentum": (optim.SGD, {"lr": 0.001, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.01}, 0),
    "sgd nesterov": (optim.SGD, {"lr": 0.001, "momentum": 0.9, "nesterov": True}, 0),
    "adam": (optim.Adam, {"lr": 0.01}, 1e-6),
    "adam amsgrad": (optim.Adam, {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1, "betas": (0.8, 0.95)}, 1e-6),
    "adam tensor": (optim.Adam, {"lr": torch.tensor(0.01)}, 1e-6),
    "adamw": (optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}, 1e-6),
    "rmsprop": (optim.RMSprop, {"lr": 0.001}, 0),
    "rmsprop momentum": (optim.RMSprop, {"lr": 0.001, "alpha": 0.9, "momentum": 0.9, "weight_decay": 0.01}, 0),
    "rmsprop centered": (optim.RMSprop, {"lr": 0.001, "centered": True, "weight_decay": 0.01}, 1e-6),
    "adagrad": (optim.Adagrad, {"lr": 0.001, "lr_decay": 0.1, "weight_decay": 0.01}, 0),
    "adagrad begun": (optim.Adagrad, {"lr": 0.01, "initial_accumulator_value": 0.3, "eps": 1e-3}, 0),
    "adadelta": (optim.Adadelta, {"lr": 0.7, "weight_decay": 0.01}, 0),
    "adadelta defaults": (optim.Adadelta, {}, 0),
}


def difference(one, other):
    """Of numbers above 1 in relation to them."""
    one, other = torch.as_tensor(one).double(), torch.as_tensor(other).double()
    return float(((one - other).abs() / other.abs().clamp(min=1)).nan_to_num(nan=math.inf).max())


def differences(ours, trained):
    """Of parameters and buffers, and of the optimizer's states."""
    parameters, states = trained.model.state_dict(), trained.optimizer.state_dict()["state"]
    assert all(torch.isfinite(tensor).all() for tensor in parameters.values()), "it diverges: nothing is compared"
    saved = ours["optimizer"]["state"]
    assert sorted(saved) == sorted(states), "other parameters have a state"
    of_states = [
        difference(saved[index][key], value)
        for index, state in states.items()
        for key, value in state.items()
        if value is not None
    ]
    return max(difference(ours["model"][key], value) for key, value in parameters.items()), max(of_states, default=0.0)


def largest_differences(peer, folder, name, dtype):
    kind, options, _ = OPTIMIZERS[name]
    trained = Trained(lambda parameters: kind(parameters, foreach=False, **options), dtype)
    one, two = os.path.join(folder, "one.pt"), os.path.join(folder, "two.pt")
    found = []

    def go_on(steps):
        subprocess.run([peer, "train", name.split()[0], one, two, str(steps)], check=True)
        for _ in range(steps):
            trained.step()
        ours = torch.load(two, weights_only=True)
        found.append(differences(ours, trained))
        return ours

    trained.step()
    trained.save(one, {})
    trained.load(go_on(STEPS - 1))
    os.replace(two, one)
    go_on(1)
    return [max(each) for each in zip(*found)]


def main(peer):
    cases = [(name, torch.float32) for name in OPTIMIZERS]
    cases += [("adadelta", dtype) for dtype in (torch.bfloat16, torch.float16)]  # our own
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for name, dtype in cases:
            most = OPTIMIZERS[name][-1]
            parameters, states = largest_differences(peer, folder, name, dtype)
            found = f"{name}, {str(dtype).removeprefix('torch.')}: parameters {parameters:.2g}, states {states:.2g}"
            print(found)
            if parameters > most or states > 10 * most:
                bad.append(f"{found}, and may differ by {most:g}, states by {10 * most:g}")
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main(sys.argv[1])
