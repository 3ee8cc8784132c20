"""Checkpoints cross between C++ and Python both ways, and training goes on to the bit on either side.

usage: checkpoint_reference.py PYTHON_PEER
"""

import os
import subprocess
import sys
import tempfile

import torch


class Trained:
    """The same model, optimizer and steps as in python_peer.cpp."""

    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
        self.optimizer = torch.optim.Adadelta(self.model.parameters(), lr=0.7, weight_decay=0.01)

    def start(self):
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))

    def step(self, number):
        batch = torch.linspace(-1, 2 + number, 18).view(6, 3)
        self.optimizer.zero_grad()
        self.model(batch).square().sum().backward()
        self.optimizer.step()

    def load(self, checkpoint):
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])


def assert_same(trained, checkpoint):
    own = trained.model.state_dict()
    assert list(sorted(own)) == list(sorted(checkpoint["model"])), "names differ"
    for name, tensor in own.items():
        assert torch.equal(tensor, checkpoint["model"][name]), f"{name} differs"
    for index, state in trained.optimizer.state_dict()["state"].items():
        saved = checkpoint["optimizer"]["state"][index]
        for name, value in state.items():
            assert torch.equal(torch.as_tensor(value).double(), torch.as_tensor(saved[name]).double()), (index, name)


def main(peer):
    with tempfile.TemporaryDirectory() as folder:
        from_cpp, from_python, back = (os.path.join(folder, name) for name in ("cpp.pt", "python.pt", "back.pt"))
        subprocess.run([peer, "write", from_cpp], check=True)
        checkpoint = torch.load(from_cpp, weights_only=True)
        assert checkpoint["epoch"] == 3 and checkpoint["extra"]["note"] == "from C++"
        assert checkpoint["optimizer"]["param_groups"][0]["lr"] == 0.7

        straight = Trained()
        straight.start()
        for number in range(3):
            straight.step(number)
        assert_same(straight, checkpoint)

        resumed = Trained()
        resumed.load(checkpoint)
        resumed.step(3)
        straight.step(3)
        for one, other in zip(straight.model.parameters(), resumed.model.parameters()):
            assert torch.equal(one, other), "Python does not go on from the C++ checkpoint to the bit"

        mine = {"format": "taas checkpoint", "version": 1, "epoch": 4, "extra": {"numbers": [1, 2.5, None, True]}}
        mine["model"] = dict(straight.model.state_dict())  # without the metadata that only Python understands
        mine["optimizer"] = straight.optimizer.state_dict()
        torch.save(mine, from_python)
        subprocess.run([peer, "resume", from_python, back], check=True)
        straight.step(4)
        checkpoint = torch.load(back, weights_only=True)
        assert_same(straight, checkpoint)
        assert checkpoint["extra"] == mine["extra"] and checkpoint["epoch"] == 5
    print("checkpoints cross both ways")


if __name__ == "__main__":
    main(sys.argv[1])
