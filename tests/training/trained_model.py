"""What peer/trained_model.hpp has as well: a small model, its batches and steps."""

import torch


class Trained:
    def __init__(self, make_optimizer, dtype=torch.float32):
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)).to(
            dtype
        )
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
        self.optimizer = make_optimizer(self.model.parameters())
        self.steps = 0

    def step(self):
        """In the first two steps one layer alone gets gradients."""
        batch = torch.linspace(-1, 2 + self.steps % 7, 18).view(6, 3).to(self.model[0].weight.dtype)
        self.optimizer.zero_grad()
        (self.model[0] if self.steps < 2 else self.model)(batch).square().sum().backward()
        self.optimizer.step()
        self.steps += 1

    def save(self, path, extra):
        model, optimizer = self.model.state_dict(), self.optimizer.state_dict()
        whole = {"format": "taas checkpoint", "version": 1, "epoch": self.steps}
        torch.save({**whole, "model": model, "optimizer": optimizer, "extra": extra}, path)

    def load(self, checkpoint):
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.steps = checkpoint["epoch"]
