"""load_file reads what torch.save and safetensors write, of any form, and save_file writes it again for them.

usage: file_reference.py PYTHON_PEER
"""

import collections
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

NARROW = [torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32, torch.uint64]


def same(one, other):
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return one == other and type(one) is type(other)


def trained():
    """What tutorials save: a model that has learned something, with its optimizer."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def cases():
    """What is saved, and what comes back where that is not the same."""
    model, optimizer = trained()
    whole = {"model_state_dict": model.state_dict(), "optimizer_state_dict": optimizer.state_dict(), "epoch": 3, "loss": 0.25}
    as_read = {**whole, "model_state_dict": dict(whole["model_state_dict"])}
    yield "tutorial", whole, as_read
    yield "deep", {"a": [{"b": (1, [2.5, "three", None, True, -(2**40)])}], 7: {"c": {}}}, None
    yield "lightning", {"epoch": 1, "global_step": 4, "pytorch-lightning_version": "2.6.1", "state_dict": model.state_dict(),
                        "loops": {"fit_loop": {"state_dict": {}}}, "callbacks": {"EarlyStopping{'monitor': 'x'}": {"wait": 0}},
                        "optimizer_states": [optimizer.state_dict()], "lr_schedulers": []}, None
    base = torch.arange(24.0).view(4, 6)
    yield "views", {"rows": base[1:3], "columns": base.t(), "empty": torch.zeros(0, 3), "scalar": torch.tensor(3)}, None
    yield "types", {str(kind): torch.tensor([0, 1, 2]).to(kind) for kind in (
        torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.bool,
        torch.complex64, torch.complex128)}, None
    yield "parameter", {"weight": torch.nn.Parameter(torch.ones(3))}, {"weight": torch.ones(3)}
    yield "kinds", {"size": base.shape, "set": {4}, "dtype": torch.float16, "bytes": b"abc", "count": collections.Counter("aab"),
                    "device": torch.device("cuda:1"), "pairs": collections.OrderedDict([("b", 1), ("a", 2)])}, \
        {"size": (4, 6), "set": [4], "dtype": "torch.float16", "bytes": "abc", "count": {"a": 2, "b": 1}, "device": torch.device("cuda:1"),
         "pairs": {"b": 1, "a": 2}}


def plain(value):
    """A state dict is a dictionary."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


class Opaque:
    """Something that only Python knows."""


class Test:
    def __init__(self, peer, folder):
        self.peer, self.folder = peer, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def passed_on(self, source, target, *options):
        done = subprocess.run([self.peer, "pass-on", source, target, *options], check=True, capture_output=True, text=True)
        return done.stdout

    def check_trees(self):
        source, target = self.path("python.pt"), self.path("cpp.pt")
        for name, value, wanted in cases():
            for protocol in (2, 4):
                torch.save(value, source, pickle_protocol=protocol)
                for option in ((), ("mapped",)):
                    said = self.passed_on(source, target, *option)
                    assert said == "", f"{name}: {said}"
                    made = torch.load(target, weights_only=True)
                    expected = plain(value if wanted is None else wanted)
                    assert same(plain(made), expected), f"{name}: {made} for {expected}"

    def check_ties(self):
        """One storage, one record; and not one for each name."""
        source, target = self.path("python.pt"), self.path("cpp.pt")
        weight = torch.randn(1000)
        torch.save({"one": weight, "other": weight, "half": weight[:500]}, source)
        assert self.passed_on(source, target) == ""
        made = torch.load(target, weights_only=True)
        assert made["one"].data_ptr() == made["other"].data_ptr() == made["half"].data_ptr()
        assert os.path.getsize(target) < 2 * weight.nbytes

    def check_safetensors(self):
        source, target, back = self.path("python.safetensors"), self.path("cpp.safetensors"), self.path("cpp.pt")
        tensors = {f"block.{number}": torch.randn(3, number + 1).to(kind) for number, kind in enumerate(
            (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2))}
        tensors |= {f"whole.{kind}": torch.arange(5).to(kind) for kind in (
            torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool, torch.uint16, torch.uint32, torch.uint64)}
        save_file(tensors, source, metadata={"format": "pt"})
        for option in ((), ("mapped",)):
            assert self.passed_on(source, target, *option) == ""
            made = load_file(target)
            assert sorted(made) == sorted(tensors) and all(
                torch.equal(made[name].view(torch.uint8), tensor.view(torch.uint8)) and made[name].dtype == tensor.dtype
                for name, tensor in tensors.items())
        save_file({"a": torch.ones(3)}, source)
        assert self.passed_on(source, back) == ""
        assert same(torch.load(back, weights_only=True), {"a": torch.ones(3)})
        with open(source, "r+b") as file:
            file.truncate(os.path.getsize(source) - 1)
        assert "is a safetensors file that is cut off or damaged" in self.passed_on(source, back)
        torch.save({"a": [torch.ones(3)]}, source + ".pt")
        assert self.passed_on(source + ".pt", target) == f"cannot save {target}: a is no dense tensor, and a safetensors file has these alone\n"

    def check_narrow_types(self):
        """Read from Python, and refused by their name where Python could not read them back."""
        source, target = self.path("python.pt"), self.path("narrow.pt")
        for kind in NARROW:
            torch.save({"a": torch.ones(3).to(kind)}, source)
            assert self.passed_on(source, self.path("narrow.safetensors")) == ""
            made = load_file(self.path("narrow.safetensors"))["a"]
            assert made.dtype == kind and torch.equal(made.float(), torch.ones(3))
            said = self.passed_on(source, target)
            assert said.startswith(f"cannot save {target}: a tensor of type ") and said.endswith("or save it as safetensors\n"), said
            assert not os.path.exists(target)

    def check_sparse(self):
        """Read from Python; what libtorch writes of one Python does not read."""
        source, target = self.path("python.pt"), self.path("cpp.pt")
        torch.save({"a": torch.eye(3).to_sparse()}, source)
        assert self.passed_on(source, target) == f"cannot save {target}: a sparse tensor cannot be saved as torch.save does: save its parts\n"
        torch.save({"a": torch.eye(3).to_sparse_csr()}, source)
        assert "holds a sparse tensor of a layout other than torch.sparse_coo" in self.passed_on(source, target)

    def check_refused(self):
        source, target = self.path("python.pt"), self.path("cpp.pt")

        def said(value):
            torch.save(value, source)
            return self.passed_on(source, target).replace(source, "FILE")

        way_out = ": in Python, save tensors, numbers, strings, lists and dictionaries of these only\n"
        assert said({"a": Opaque()}) == f"FILE holds an object of Python's class __main__.Opaque{way_out}"
        assert said({(1, 2): 3}).startswith("FILE holds a dictionary with a key of type Tuple")
        torch.save({"bytes": b"\xff"}, source)
        assert self.passed_on(source, target) == f"cannot save {target}: a string that is not UTF-8, as Python's strings are\n"
        assert said([2**70]).startswith("FILE holds a number of more than 64 bits")
        circle = []
        circle.append(circle)
        assert said(circle).startswith("FILE holds a list or a dictionary that holds itself")
        deep = []
        for _ in range(300):
            deep = [deep]
        assert said(deep).startswith("FILE holds lists or dictionaries in more than 200 levels")

    def check_without_checksums(self):
        source, target = self.path("python.pt"), self.path("cpp.pt")
        torch.serialization.set_crc32_options(False)
        torch.save({"a": torch.randn(100)}, source)
        torch.serialization.set_crc32_options(True)
        assert "LoadOptions{.check = false}" in self.passed_on(source, target)
        assert self.passed_on(source, target, "unchecked") == ""


def main(peer):
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        test = Test(peer, folder)
        test.check_trees()
        test.check_ties()
        test.check_safetensors()
        test.check_narrow_types()
        test.check_sparse()
        test.check_refused()
        test.check_without_checksums()
    print("files of any form cross both ways")


if __name__ == "__main__":
    main(sys.argv[1])
