"""Training under autocast with a GradScaler is equal to Python's to the bit, with infinite gradients in it.

usage: grad_scaler_reference.py PYTHON_PEER
"""

import os
import subprocess
import sys
import tempfile

import torch


def trained():
    """The same as in amp_tasks.cpp."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**125, growth_interval=3)
    scales, trackers = [], []
    for step in range(24):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.linspace(-1, 2 + step, 18).view(6, 3)).square().sum()
        if step % 7 == 5:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        if step % 3 == 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        trackers.append(scaler._get_growth_tracker())
    return model, optimizer, scaler, scales, trackers


def main(peer):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cpp.pt")
        subprocess.run([peer, "grad-scaler", path], check=True)
        ours = torch.load(path, weights_only=True)
    model, optimizer, scaler, scales, trackers = trained()
    backoffs = sum(after < before for before, after in zip(scales, scales[1:]))
    growths = sum(after > before for before, after in zip(scales, scales[1:]))
    assert backoffs > 3 and growths > 1, f"too little happens to compare: {scales}"
    assert ours["extra"]["scales"].tolist() == scales and ours["extra"]["trackers"].tolist() == trackers
    assert ours["extra"]["state"] == scaler.state_dict()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, ours["model"][name]), f"{name} differs"
    for index, state in optimizer.state_dict()["state"].items():
        assert torch.equal(state["momentum_buffer"], ours["optimizer"]["state"][index]["momentum_buffer"])
    print(f"{backoffs} infinite steps and {growths} growths are equal to Python's")


if __name__ == "__main__":
    main(sys.argv[1])
