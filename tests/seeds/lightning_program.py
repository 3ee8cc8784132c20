"""A program around one of the chapter's two lines that make a Trainer."""

from pieces import piece

PROGRAM = """
import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def training_step(self, batch, batch_idx):
        self.seen += batch[0].flatten().tolist()
        return self.layer(batch[0]).square().mean()

    def on_train_end(self):
        samples = self.all_gather(torch.tensor(self.seen)).flatten()
        weights = self.all_gather(self.layer.weight.detach()).flatten()
        if self.trainer.is_global_zero:
            assert sorted(samples.tolist()) == list(range(4 * self.trainer.world_size)), samples
            assert len(weights.unique()) == 1, weights
            print(f"{self.trainer.world_size} ranks on {self.trainer.num_nodes} machines, {self.trainer.global_step} steps", flush=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-6)


settings = {"max_epochs": 1, "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
            "enable_model_summary": False}
TRAINER
numbers = torch.arange(4.0 * trainer.world_size)
trainer.fit(Model(), DataLoader(TensorDataset(numbers[:, None]), batch_size=2, shuffle=True))
"""


def lightning_program(line: int) -> str:
    """With the first or the second Trainer: two steps of two samples in each rank, and every sample once. Of the line, `...` is filled
    in, and the accelerator is what the machine has."""
    lines = [line for line in piece("chapter/lightning_trainers.py").splitlines() if line.startswith("trainer")]
    return PROGRAM.replace("TRAINER", lines[line].replace("...", "**settings", 1).replace('"gpu"', '"auto"'))
