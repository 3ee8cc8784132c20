"""Gradients clipped in C++ are equal to Python's to the bit, for each kind of norm.

usage: clip_grad_reference.py PYTHON_PEER
"""

import os
import subprocess
import sys
import tempfile

import torch
from torch.nn.utils import clip_grad_norm_

NORMS = ("0", "1", "2", "3.5", "inf", "-inf")


def with_gradients(gradients):
    parameters = [torch.zeros_like(gradient) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients):
        parameter.grad = gradient.clone()
    return parameters


def expected(gradients):
    clipped = {}
    for name in NORMS:
        for most in (0.7, 1e6):
            key, parameters = f"{name}/{int(most)}", with_gradients(gradients)
            clipped[key] = clip_grad_norm_(parameters, most, float(name))
            clipped.update({f"{key}/{number}": parameter.grad for number, parameter in enumerate(parameters)})
    return clipped


def main(peer):
    torch.manual_seed(3)
    kinds = (torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float32, torch.bfloat16)
    gradients = [torch.randn(size).to(kind) for size, kind in zip((1000, 3, 50, 70, 1, 9), kinds)]
    with tempfile.TemporaryDirectory() as folder:
        one, two = (os.path.join(folder, name) for name in ("one.pt", "two.pt"))
        torch.save({str(number): gradient for number, gradient in enumerate(gradients)}, one)
        subprocess.run([peer, "clip", one, two], check=True)
        ours = torch.load(two, weights_only=True)["model"]
    theirs = expected(gradients)
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert tensor.dtype == ours[name].dtype and torch.equal(tensor, ours[name]), (
            f"{name} is {ours[name]}, Python's {tensor}"
        )
    print(f"{len(NORMS)} norms are equal to Python's")


if __name__ == "__main__":
    main(sys.argv[1])
