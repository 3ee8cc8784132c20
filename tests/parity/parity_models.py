"""The models of parity_models.hpp."""

import torch
from torch import nn

INPUTS, CLASSES = 64, 10


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.hidden = nn.Linear(4 * 6 * 6, 32)
        self.output = nn.Linear(32, CLASSES)

    def forward(self, x, more):
        maps = torch.relu(self.norm(self.conv(x.view(-1, 1, 8, 8)))).flatten(1)
        return self.output(torch.relu(self.hidden(maps)))


class Branched(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(INPUTS, 32)
        self.output = nn.Linear(32, CLASSES)
        self.extra = nn.Linear(32, CLASSES)

    def forward(self, x, more):
        h = torch.relu(self.hidden(x))
        return self.output(h) + self.extra(h) if more else self.output(h)


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16, sparse=True)
        self.output = nn.Linear(16, CLASSES)

    def forward(self, x, more):
        return self.output(self.words((x.abs() * 7).long().remainder(50)).mean(1))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(INPUTS, INPUTS)
        self.narrow = nn.Linear(INPUTS, 16).bfloat16()
        self.output = nn.Linear(16, CLASSES)

    def forward(self, x, more):
        there = torch.tanh(self.mix(x))
        mixed = torch.tanh(nn.functional.linear(there, self.mix.weight.t()))
        return self.output(torch.relu(self.narrow(mixed.bfloat16()).float()))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.output = nn.Linear(16, CLASSES)

    def forward(self, x, more):
        return self.output(self.lstm(x.view(-1, 8, 8))[0].select(1, -1))


class Transformer(nn.Module):
    WIDTH = 16

    def __init__(self):
        super().__init__()
        width = self.WIDTH
        self.inner = nn.Linear(8, width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)  # it would have no effect, and rounding errors as gradients
        self.value = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.output = nn.Linear(width, CLASSES)

    def forward(self, x, more):
        h = self.inner(x.view(-1, 8, 8))
        q, k, v = self.query(h), self.key(h), self.value(h)
        weights = torch.softmax(torch.matmul(q, k.transpose(1, 2)) / 4.0, -1)
        attended = self.norm(h + torch.matmul(weights, v))
        return self.output((attended + self.narrow(nn.functional.gelu(self.wide(attended)))).mean(1))


class Bags(nn.Module):
    SPARSE = False

    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(50, 16, sparse=self.SPARSE)
        self.output = nn.Linear(4 * 16, CLASSES)

    def forward(self, x, more):
        chosen = (x.abs() * 7).long().remainder(50).flatten()
        starts = torch.arange(0, chosen.numel(), 16)
        return self.output(self.words(chosen, starts).view(-1, 4 * 16))


class SparseBags(Bags):
    SPARSE = True


class WeighingAttention(nn.MultiheadAttention):
    """Computes attention's weights, as libtorch's does: scaled_dot_product_attention() would round differently."""

    def forward(self, *arguments, **options):
        return super().forward(*arguments, **{**options, "need_weights": True})


class Encoder(nn.Module):
    WIDTH = 16

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, self.WIDTH)
        layer = nn.TransformerEncoderLayer(self.WIDTH, 2, 32, dropout=0)
        layer.self_attn = WeighingAttention(self.WIDTH, 2, dropout=0)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.output = nn.Linear(self.WIDTH, CLASSES)

    def forward(self, x, more):
        return self.output(self.layers(self.inner(x.view(-1, 8, 8)).transpose(0, 1)).mean(0))


class Doubled(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(INPUTS, INPUTS).double()
        self.again = self.mix
        self.output = nn.Linear(INPUTS, CLASSES)

    def forward(self, x, more):
        there = torch.tanh(self.mix(x.double()))
        return self.output(torch.tanh(self.again(there)).float())


OF_ALL_CASES = (Convolutional, Branched, Sparse, Tied, Recurrent, Transformer)
OF_SOME_CASES = (Bags, SparseBags, Encoder, Doubled)
MODELS = {model.__name__.lower(): model for model in OF_ALL_CASES + OF_SOME_CASES}
NAMES = [model.__name__.lower() for model in OF_ALL_CASES]
FURTHER = [model.__name__.lower() for model in OF_SOME_CASES]

# How far two numbers may lie apart that are not equal to the bit: docs/ddp.md has the reason.
ROUNDED = {"encoder": 1e-7}
