"""The models of parity_models.hpp."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

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
    """Computes the weights of attention, as libtorch's does; otherwise scaled_dot_product_attention() would round differently."""

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


class Scaled(nn.Module):
    def __init__(self, shared):
        super().__init__()
        self.register_buffer("scale", shared)


class Gpt(nn.Module):
    WORDS, WIDTH, LENGTH = 50, 16, 16

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.WORDS, self.WIDTH)
        self.places = nn.Embedding(self.LENGTH, self.WIDTH)
        self.before = nn.LayerNorm(self.WIDTH)
        self.mixed = nn.Linear(self.WIDTH, 3 * self.WIDTH)
        self.joined = nn.Linear(self.WIDTH, self.WIDTH)
        self.between = nn.LayerNorm(self.WIDTH)
        self.wide = nn.Linear(self.WIDTH, 4 * self.WIDTH)
        self.narrow = nn.Linear(4 * self.WIDTH, self.WIDTH)
        self.last = nn.LayerNorm(self.WIDTH)
        self.head = self.words.weight
        self.one = Scaled(torch.ones(self.WIDTH))
        self.other = Scaled(self.one.scale)

    def forward(self, x, more):
        chosen = (x.abs() * 7).long().remainder(self.WORDS)[:, : self.LENGTH].contiguous()
        h = self.words(chosen) + self.places(torch.arange(self.LENGTH))
        parts = self.mixed(self.before(h)).chunk(3, -1)
        h = h + self.joined(nn.functional.scaled_dot_product_attention(*parts, is_causal=True))
        h = h + self.narrow(nn.functional.gelu(self.wide(self.between(h))))
        with torch.no_grad():
            self.one.scale.mul_(0.9).add_(h.detach().abs().mean((0, 1)), alpha=0.1)
        return nn.functional.linear(self.last(h * self.other.scale), self.head).mean(1)[:, :CLASSES]


class Block(nn.Module):
    WIDTH = 16

    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(self.WIDTH, 4 * self.WIDTH)
        self.narrow = nn.Linear(4 * self.WIDTH, self.WIDTH)

    def forward(self, x):
        return x + self.narrow(nn.functional.dropout(nn.functional.gelu(self.wide(x)), 0.3))


class Recomputed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, Block.WIDTH)
        self.first = Block()
        self.second = Block()
        self.output = nn.Linear(Block.WIDTH, CLASSES)

    def forward(self, x, more):
        torch.manual_seed(11)
        h = self.inner(x.view(-1, 8, 8))
        for block in (self.first, self.second, self.first):
            h = checkpoint(block, h, use_reentrant=False)
        return self.output(h.mean(1))


class Residual(nn.Module):
    """What ResNet-18 is made of."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(4)
        self.first = nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(8)
        self.shortcut = nn.Conv2d(4, 8, 1, stride=2, bias=False)
        self.shortcut_norm = nn.BatchNorm2d(8)
        self.output = nn.Linear(8, CLASSES)

    def forward(self, x, more):
        x = torch.relu(self.stem_norm(self.stem(x.view(-1, 1, 8, 8))))
        y = torch.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        h = torch.relu(y + self.shortcut_norm(self.shortcut(x)))
        pooled = nn.functional.max_pool2d(h, 3, 2, 1)
        return self.output(nn.functional.adaptive_avg_pool2d(pooled, 1).flatten(1))


class Adversaries(nn.Module):
    """A generator and a discriminator, each with a wrapper of its own."""

    NOISE = 16

    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(self.NOISE, 32), nn.ReLU(), nn.Linear(32, INPUTS), nn.Tanh())
        self.discriminator = nn.Sequential(nn.Linear(INPUTS, 32), nn.ReLU(), nn.Linear(32, 1))


OF_ALL_CASES = (Convolutional, Branched, Sparse, Tied, Recurrent, Transformer)
OF_SOME_CASES = (Bags, SparseBags, Encoder, Doubled, Gpt, Recomputed, Residual)
MODELS = {model.__name__.lower(): model for model in (*OF_ALL_CASES, *OF_SOME_CASES, Adversaries)}
NAMES = [model.__name__.lower() for model in OF_ALL_CASES]
FURTHER = [model.__name__.lower() for model in OF_SOME_CASES]

# How far two numbers may lie apart that are not equal to the bit: docs/cpp/ddp.md has the reason.
ROUNDED = {"encoder": 1e-7}
