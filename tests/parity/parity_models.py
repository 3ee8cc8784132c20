"""The models of parity_models.hpp."""

import torch
from torch import nn

INPUTS, CLASSES = 64, 10


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(INPUTS, 48)
        self.second = nn.Linear(48, 32)
        self.output = nn.Linear(32, CLASSES)

    def forward(self, x, more):
        return self.output(torch.relu(self.second(torch.relu(self.first(x)))))


class Convolutional(nn.Module):
    NORM = nn.BatchNorm2d

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = self.NORM(4)
        self.hidden = nn.Linear(4 * 6 * 6, 32)
        self.output = nn.Linear(32, CLASSES)

    def forward(self, x, more):
        maps = torch.relu(self.norm(self.conv(x.view(-1, 1, 8, 8)))).flatten(1)
        return self.output(torch.relu(self.hidden(maps)))


def beside(channels):
    return channels.float().view(1, -1, 1, 1)


class SyncNormFunction(torch.autograd.Function):
    """torch.nn.SyncBatchNorm refuses the CPU: the operations of lib/training/norm/sync_norm.cpp there, in its order."""

    @staticmethod
    def forward(context, x, weight, bias, norm):
        x = x.contiguous()
        channels, count = x.shape[1], float(x.numel() // x.shape[1])
        variance, mean = torch.var_mean(x, (0, 2, 3), unbiased=False)
        row = torch.cat([mean.double(), variance.double() * count, torch.full((1,), count, dtype=torch.float64)])
        rows = [torch.empty_like(row) for _ in range(torch.distributed.get_world_size())]
        torch.distributed.all_gather(rows, row)
        means, squares, counts = torch.stack(rows).split(channels, 1)
        total = counts.sum()
        mean = (means * counts).sum(0) / total
        squares = (squares + counts * (means - mean).square()).sum(0)
        for running, now in ((norm.running_mean, mean), (norm.running_var, squares / (total - 1))):
            running.mul_(1 - norm.momentum).add_(now.float(), alpha=norm.momentum)
        inverse_deviation = (squares / total + norm.eps).rsqrt()
        context.save_for_backward(x, weight, mean, inverse_deviation, total)
        return (x - beside(mean)) * beside(inverse_deviation * weight) + beside(bias)

    @staticmethod
    def backward(context, gradient):
        x, weight, mean, inverse_deviation, total = context.saved_tensors
        gradient = gradient.contiguous()
        xmu = x - beside(mean)
        gradients = gradient.sum((0, 2, 3), dtype=torch.float64)
        times_xmu = (gradient * xmu).sum((0, 2, 3), dtype=torch.float64)
        both = torch.cat([gradients, times_xmu])
        torch.distributed.all_reduce(both)
        of_all, of_all_times_xmu = both.split(len(mean))
        slope = of_all_times_xmu / total * inverse_deviation.square()
        centred = gradient - beside(of_all / total) - xmu * beside(slope)
        of_x = centred * beside(inverse_deviation * weight)
        return of_x, (times_xmu * inverse_deviation).float(), gradients.float(), None


class SyncNorm(nn.BatchNorm2d):
    def forward(self, x):
        return SyncNormFunction.apply(x, self.weight, self.bias, self)


class SyncCnn(Convolutional):
    NORM = SyncNorm


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
        self.bags = nn.EmbeddingBag(50, 16, sparse=True)
        self.output = nn.Linear(16, CLASSES)

    def forward(self, x, more):
        chosen = (x.abs() * 7).long().remainder(50)
        return self.output(self.words(chosen).mean(1) + self.bags(chosen))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(INPUTS, INPUTS)
        self.again = self.mix
        self.narrow = nn.Linear(INPUTS, 16).bfloat16()
        self.output = nn.Linear(16, CLASSES)

    def forward(self, x, more):
        mixed = torch.tanh(self.again(torch.tanh(self.mix(x))))
        return self.output(torch.relu(self.narrow(mixed.bfloat16()).float()))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.output = nn.Linear(16, CLASSES)

    def forward(self, x, more):
        return self.output(self.lstm(x.view(-1, 8, 8))[0].select(1, -1))


class Gan(nn.Module):
    NOISE = 16

    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(
            nn.Linear(self.NOISE, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, INPUTS), nn.Tanh()
        )
        self.discriminator = nn.Sequential(nn.Linear(INPUTS, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))


MODELS = {
    "mlp": Mlp,
    "convolutional": Convolutional,
    "sync_cnn": SyncCnn,
    "branched": Branched,
    "sparse": Sparse,
    "tied": Tied,
    "recurrent": Recurrent,
}
