"""Layers of libtorch, and those of libtaas in the place of some, compute Python's numbers to the bit, forward and backward. What
does not is in docs/cpp/ddp.md.

usage: layers_reference.py PYTHON_PEER
"""

import os
import subprocess
import sys
import tempfile

import torch
from torch import nn

ROWS, IMAGE = (5, 8), (3, 8, 9, 9)
LAYERS = {
    "linear of two dimensions": (nn.Linear(8, 6), ROWS),
    "taas linear of two dimensions": (nn.Linear(8, 6), ROWS),
    "taas linear of three dimensions": (nn.Linear(8, 6), (3, 5, 8)),
    "taas linear without bias": (nn.Linear(8, 6, bias=False), (3, 5, 8)),
    "embedding": (nn.Embedding(11, 8), None),
    "layer norm": (nn.LayerNorm(8), (3, 5, 8)),
    "group norm": (nn.GroupNorm(2, 8), IMAGE),
    "batch norm": (nn.BatchNorm1d(8), ROWS),
    "batch norm of images": (nn.BatchNorm2d(8), IMAGE),
    "instance norm": (nn.InstanceNorm2d(8, affine=True), IMAGE),
    "convolution": (nn.Conv2d(8, 6, 3, stride=2, padding=1), IMAGE),
    "convolution with reflection": (nn.Conv2d(8, 6, 3, padding=1, padding_mode="reflect"), IMAGE),
    "convolution in groups": (nn.Conv2d(8, 8, 3, groups=4), IMAGE),
    "convolution of sequences": (nn.Conv1d(8, 6, 3, dilation=2), (3, 8, 9)),
    "transposed convolution": (nn.ConvTranspose2d(8, 6, 3, stride=2), IMAGE),
    "lstm": (nn.LSTM(8, 6, 2, batch_first=True), (3, 5, 8)),
    "gru": (nn.GRU(8, 6, bidirectional=True), (3, 5, 8)),
    "rnn": (nn.RNN(8, 6, nonlinearity="relu"), (3, 5, 8)),
    "gelu": (nn.GELU(), ROWS),
    "gelu by tanh": (nn.GELU(approximate="tanh"), ROWS),
    "silu": (nn.SiLU(), ROWS),
    "softmax": (nn.Softmax(-1), ROWS),
    "prelu": (nn.PReLU(), ROWS),
    "max pool": (nn.MaxPool2d(2), IMAGE),
    "average pool": (nn.AvgPool2d(2), IMAGE),
    "adaptive pool": (nn.AdaptiveAvgPool2d(3), IMAGE),
    "upsample": (nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), IMAGE),
}


def run(layer, given):
    source = given["input"].clone()
    if source.is_floating_point():
        source.requires_grad_()
    output = layer(source)
    output = output[0] if isinstance(output, tuple) else output
    given["weights"] = torch.randn_like(output)
    (output * given["weights"]).sum().backward()
    made = {"output": output.detach(), **dict(layer.named_buffers())}
    made |= {f"{name}.grad": parameter.grad for name, parameter in layer.named_parameters()}
    return made | ({"input.grad": source.grad} if source.is_floating_point() else {})


def main(peer):
    torch.manual_seed(3)
    torch.set_num_threads(1)
    given, wanted = {}, {}
    for name, (layer, shape) in LAYERS.items():
        state = {key: tensor.clone() for key, tensor in layer.state_dict().items()}
        given[name] = {"state": state, "input": torch.randint(11, (4, 6)) if shape is None else torch.randn(shape)}
        wanted |= {f"{name}/{key}": tensor for key, tensor in run(layer, given[name]).items()}
    with tempfile.TemporaryDirectory() as folder:
        source, target = (os.path.join(folder, name) for name in ("given.pt", "made.pt"))
        torch.save(given, source)
        subprocess.run([peer, "layers", source, target], check=True)
        made = torch.load(target, weights_only=True)
    assert set(made) == set(wanted), set(made) ^ set(wanted)
    bad = [f"{key} differs by {(made[key] - tensor).abs().max():.1e}" for key, tensor in wanted.items()
           if not torch.equal(made[key], tensor)]
    if bad:
        sys.exit("\n".join(bad))
    print(f"{len(LAYERS)} layers are equal to Python's")


if __name__ == "__main__":
    main(sys.argv[1])
