"""Checkpoints cross between C++ and Python both ways, and training goes on to the bit on either side.

usage: checkpoint_reference.py PYTHON_PEER [--both-ways]     the second: nothing else
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

        def loss():
            self.optimizer.zero_grad()
            value = self.model(batch).square().sum()
            value.backward()
            return value

        self.optimizer.step(loss)

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


# Python's own defaults, among which whole numbers are given for broken ones, and what libtaas has or libtorch alone.
DEFAULTS = {
    "adam": (torch.optim.Adam, {}, True),
    "adamw": (torch.optim.AdamW, {"lr": 1, "weight_decay": 0}, True),
    "sgd momentum": (torch.optim.SGD, {"momentum": 1, "dampening": 0}, True),
    "sgd": (torch.optim.SGD, {}, True),
    "adadelta": (torch.optim.Adadelta, {}, True),
    "rmsprop": (torch.optim.RMSprop, {}, True),
    "adagrad": (torch.optim.Adagrad, {}, False),
    "adam capturable": (torch.optim.Adam, {"lr": torch.tensor(0.01), "betas": (0.5, 0.9)}, False),
    # With a history that is full, with the state of one iteration, whose H_diag is a number, and with that of none.
    "lbfgs": (torch.optim.LBFGS, {"lr": 0.1, "max_iter": 4, "history_size": 2}, False),
    "lbfgs wolfe": (torch.optim.LBFGS, {"max_iter": 3, "line_search_fn": "strong_wolfe"}, False),
    "lbfgs begun": (torch.optim.LBFGS, {"lr": 0.1, "max_iter": 1}, False),
    "lbfgs converged": (torch.optim.LBFGS, {"tolerance_grad": 1e9}, False),
}


def check_default_optimizers(peer):
    """From Python to C++ for a step, and from there for one more on either side."""
    with tempfile.TemporaryDirectory() as folder:
        one, two, three = (os.path.join(folder, name) for name in ("python.pt", "cpp.pt", "last.pt"))
        for name, (kind, options, exact) in DEFAULTS.items():
            trained = Trained()
            trained.optimizer = kind(trained.model.parameters(), **options)
            trained.start()
            trained.step(0)
            torch.save(
                {
                    "format": "taas checkpoint",
                    "version": 1,
                    "epoch": 1,
                    "extra": {},
                    "model": trained.model.state_dict(),
                    "optimizer": trained.optimizer.state_dict(),
                },
                one,
            )
            compare = torch.equal if exact else torch.allclose
            for begin, end in ((one, two), (two, three)):
                subprocess.run([peer, "adopt", name, begin, end], check=True)
                trained.step(0)
                saved = torch.load(end, weights_only=True)
                for key, tensor in trained.model.state_dict().items():
                    assert compare(tensor, saved["model"][key]), f"{name}: {key} differs"
                trained.load(saved)


class Opaque:
    """Something that only Python knows."""


def check_other_files(peer):
    state = torch.nn.Linear(2, 1).state_dict()
    whole = {"format": "taas checkpoint", "version": 1, "epoch": 2, "model": state, "optimizer": None, "extra": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.pt")

        def seen(value, **options):
            torch.save(value, path, **options)
            return subprocess.run([peer, "describe", path], check=True, capture_output=True, text=True).stdout.replace(
                path, "FILE"
            )

        read = "epoch {}, model bias cpu weight cpu, no optimizer\n"
        assert seen(whole) == read.format(2), "a state dict is in it as Python makes it"
        assert seen(state) == seen(dict(state)) == read.format(0), "a state dict alone"
        original = torch.serialization.location_tag
        torch.serialization.location_tag = lambda storage: "cuda:0"
        assert seen(whole) == read.format(2), "saved from a GPU"
        torch.serialization.location_tag = original
        assert seen({**whole, "version": 2}) == (
            "FILE is a checkpoint of version 2, and this libtaas reads version 1: load it with the one that wrote it\n"
        )
        assert seen({"epoch": 1, "model_state_dict": state}).startswith(
            "FILE is neither a checkpoint of taas nor a state dict: it holds a dictionary with epoch, "
            "model_state_dict; in Python"
        )
        assert "holds no dictionary" in seen([1, 2])
        assert "is in torch's old format: load it in Python" in seen(whole, _use_new_zipfile_serialization=False)
        way_out = ": in Python, save state dicts, numbers, strings and lists only\n"
        assert (
            seen({**whole, "extra": {"object": Opaque()}})
            == f"FILE holds an object of Python's class __main__.Opaque{way_out}"
        )
        unread = seen({**whole, "extra": {"kind": torch.float16}})
        assert (
            unread.startswith("FILE holds what libtorch cannot read (")
            and unread.endswith(way_out)
            and unread.count("\n") == 1
        ), unread


def check_memory(peer):
    """Tensors go straight from the file into their memory, and from there into the file."""
    mebibytes, most = 192, 64
    with tempfile.TemporaryDirectory() as folder:
        one, two = (os.path.join(folder, name) for name in ("python.pt", "cpp.pt"))
        weights = {str(index): torch.full((1 << 20,), float(index)) for index in range(mebibytes // 4)}
        torch.save(weights, one)
        said = subprocess.run([peer, "copy", one, two], check=True, capture_output=True, text=True).stdout
        before, loaded, saved = (int(word) / 1024 for word in said.split())
        assert loaded - before < mebibytes + most, f"loading {mebibytes} MiB took {loaded - before:.0f} MiB"
        assert saved - loaded < most, f"saving {mebibytes} MiB took {saved - loaded:.0f} MiB more"
        assert all(
            torch.equal(tensor, weights[name]) for name, tensor in torch.load(two, weights_only=True)["model"].items()
        )


def check_both_ways(peer):
    with tempfile.TemporaryDirectory() as folder:
        from_cpp, from_python, back = (os.path.join(folder, name) for name in ("cpp.pt", "python.pt", "back.pt"))
        subprocess.run([peer, "write", from_cpp], check=True)
        checkpoint = torch.load(from_cpp, weights_only=True)
        assert checkpoint["epoch"] == 3 and checkpoint["extra"]["note"] == "from C++"
        assert checkpoint["extra"]["whole"] == [1, 2, 3] and checkpoint["extra"]["broken"] == [0.5, 1.5]
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
        mine["model"] = straight.model.state_dict()
        mine["optimizer"] = straight.optimizer.state_dict()
        torch.save(mine, from_python)
        subprocess.run([peer, "resume", from_python, back], check=True)
        straight.step(4)
        checkpoint = torch.load(back, weights_only=True)
        assert_same(straight, checkpoint)
        assert checkpoint["extra"] == mine["extra"] and checkpoint["epoch"] == 5


def main(peer, only=None):
    check_both_ways(peer)
    if only != "--both-ways":
        check_default_optimizers(peer)
        check_other_files(peer)
        check_memory(peer)
    print("checkpoints cross both ways")


if __name__ == "__main__":
    main(*sys.argv[1:])
