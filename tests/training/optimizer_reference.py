"""Optimizers of libtaas make the same parameters and states as Python's, to the bit.

usage: optimizer_reference.py PYTHON_PEER
"""

import os
import subprocess
import sys
import tempfile

import torch
from torch import optim

CAPTURABLE = {"capturable": True, "foreach": True}
OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.001),
    "sgd momentum": lambda p: optim.SGD(p, lr=0.001, momentum=0.9, dampening=0.2, weight_decay=0.01),
    "sgd nesterov": lambda p: optim.SGD(p, lr=0.001, momentum=0.9, nesterov=True),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "adam amsgrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1, betas=(0.8, 0.95)),
    "adamw": lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.001),
    "rmsprop momentum": lambda p: optim.RMSprop(p, lr=0.001, alpha=0.9, momentum=0.9, weight_decay=0.01),
    "rmsprop centered": lambda p: optim.RMSprop(p, lr=0.001, centered=True, weight_decay=0.01),
    "rmsprop centered momentum": lambda p: optim.RMSprop(p, lr=0.001, alpha=0.9, eps=1e-4, momentum=0.8, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.001, lr_decay=0.1, weight_decay=0.01),
    "adagrad begun": lambda p: optim.Adagrad(p, lr=0.01, initial_accumulator_value=0.3, eps=1e-3),
    "adadelta": lambda p: optim.Adadelta(p, lr=0.7, weight_decay=0.01),
    "sgd fused": lambda p: optim.SGD(p, lr=0.001, momentum=0.9, weight_decay=0.01, fused=True),
    "adam fused": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1, fused=True),
    "adamw fused": lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.1, fused=True),
    "sgd fused capturable": lambda p: optim.SGD(p, lr=torch.tensor(0.001), momentum=0.9, nesterov=True, fused=True),
    "adamw fused capturable": lambda p: optim.AdamW(
        p, lr=torch.tensor(0.01), weight_decay=0.1, fused=True, capturable=True
    ),
    "adam capturable": lambda p: optim.Adam(p, lr=torch.tensor(0.01), amsgrad=True, weight_decay=0.1, **CAPTURABLE),
    "adamw capturable": lambda p: optim.AdamW(p, lr=torch.tensor(0.01), weight_decay=0.1, **CAPTURABLE),
    "rmsprop capturable": lambda p: optim.RMSprop(
        p, lr=torch.tensor(0.001), centered=True, weight_decay=0.01, **CAPTURABLE
    ),
    "rmsprop momentum capturable": lambda p: optim.RMSprop(p, lr=torch.tensor(0.001), momentum=0.9, **CAPTURABLE),
    "adadelta capturable": lambda p: optim.Adadelta(p, lr=torch.tensor(0.7), weight_decay=0.01, **CAPTURABLE),
}


# Compared in 16 bits, too.
NARROW = [name for name in OPTIMIZERS if "fused" not in name and "capturable" not in name]


def allow_capturable_on_the_cpu():
    """Python refuses it there, for want of a use; the operations are the same."""
    for name in ("adam", "adadelta", "rmsprop"):
        sys.modules[f"torch.optim.{name}"]._get_capturable_supported_devices = lambda *_, **__: ["cpu"]


def optimize(name, make, dtype):
    """The same model, data and steps as in python_peer.cpp."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    optimizer = make(model.parameters())
    part = not (
        name.startswith("sgd") and optimizer.defaults["fused"]
    )  # it cannot begin one parameter's momentum later
    for number in range(7):
        batch = torch.linspace(-1, 2 + number, 18).view(6, 3).to(dtype)
        optimizer.zero_grad()
        (model[0] if part and number < 2 else model)(batch).square().sum().backward()
        optimizer.step()
    return model.state_dict(), optimizer.state_dict()["state"]


def differences(ours, parameters, states):
    if not all(torch.isfinite(tensor).all() for tensor in parameters.values()):
        yield "diverges: nothing is compared"
    for key, tensor in parameters.items():
        if not torch.equal(tensor, ours["model"][key]):
            yield f"{key} differs"
    for index, state in states.items():
        for key, value in state.items():
            saved = ours["optimizer"]["state"][index][key] if value is not None else None
            if value is not None and not torch.equal(torch.as_tensor(value).double(), torch.as_tensor(saved).double()):
                yield f"{key} of parameter {index} differs"


def main(peer):
    allow_capturable_on_the_cpu()
    cases = [(name, torch.float32) for name in OPTIMIZERS]
    cases += [(name, dtype) for name in NARROW for dtype in (torch.bfloat16, torch.float16)]
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for name, dtype in cases:
            path = os.path.join(folder, "cpp.pt")
            subprocess.run([peer, "optimize", name, path, str(dtype).removeprefix("torch.")], check=True)
            ours = torch.load(path, weights_only=True)
            bad += [f"{name}, {dtype}: {text}" for text in differences(ours, *optimize(name, OPTIMIZERS[name], dtype))]
    if bad:
        sys.exit("\n".join(bad))
    print(f"{len(cases)} optimizers are equal to Python's")


if __name__ == "__main__":
    main(sys.argv[1])
