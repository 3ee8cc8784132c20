"""Two steps of two samples in each rank, every sample once: lightning_devices.py DEVICES NODES, as told to Trainer."""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Line(LightningModule):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.seen = []

    def training_step(self, batch, batch_idx):
        self.seen += batch[0].flatten().tolist()
        return (self.weight * batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-6)

    def on_train_end(self):
        samples = self.all_gather(torch.tensor(self.seen)).flatten()
        weights = self.all_gather(self.weight.detach()).flatten()
        if self.trainer.is_global_zero:
            assert sorted(samples.tolist()) == list(range(4 * self.trainer.world_size)), samples
            assert len(weights.unique()) == 1, weights
            print(
                f"{self.trainer.world_size} ranks on {self.trainer.num_nodes} machines, "
                f"{self.trainer.global_step} steps",
                flush=True,
            )


devices, nodes = map(int, sys.argv[1:])
trainer = Trainer(
    accelerator="auto",
    strategy="ddp",
    devices=devices,
    num_nodes=nodes,
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
numbers = torch.arange(4.0 * devices * nodes)
trainer.fit(Line(), DataLoader(TensorDataset(numbers[:, None]), batch_size=2, shuffle=True))
