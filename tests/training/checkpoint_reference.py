"""Checkpoints cross between C++ and Python both ways, and training goes on to the bit on either side.

usage: checkpoint_reference.py PYTHON_PEER [--both-ways]     the second: nothing else
"""

import os
import subprocess
import sys
import tempfile

import torch
from trained_model import Trained


def adadelta(parameters):
    return torch.optim.Adadelta(parameters, lr=0.7, weight_decay=0.01)


def assert_same(trained, checkpoint):
    own = trained.model.state_dict()
    assert list(sorted(own)) == list(sorted(checkpoint["model"])), "names differ"
    for name, tensor in own.items():
        assert torch.equal(tensor, checkpoint["model"][name]), f"{name} differs"
    for index, state in trained.optimizer.state_dict()["state"].items():
        saved = checkpoint["optimizer"]["state"][index]
        for name, value in state.items():
            assert torch.equal(torch.as_tensor(value).double(), torch.as_tensor(saved[name]).double()), (index, name)


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

        straight, resumed = Trained(adadelta), Trained(adadelta)
        for _ in range(3):
            straight.step()
        assert_same(straight, checkpoint)

        resumed.load(checkpoint)
        resumed.step()
        straight.step()
        for one, other in zip(straight.model.parameters(), resumed.model.parameters()):
            assert torch.equal(one, other), "Python does not go on from the C++ checkpoint to the bit"

        extra = {"numbers": [1, 2.5, None, True]}
        straight.save(from_python, extra)
        subprocess.run([peer, "train", "adadelta", from_python, back, "1"], check=True)
        straight.step()
        checkpoint = torch.load(back, weights_only=True)
        assert_same(straight, checkpoint)
        assert checkpoint["extra"] == extra and checkpoint["epoch"] == 5


def main(peer, only=None):
    check_both_ways(peer)
    if only != "--both-ways":
        check_other_files(peer)
        check_memory(peer)
    print("checkpoints cross both ways")


if __name__ == "__main__":
    main(*sys.argv[1:])
