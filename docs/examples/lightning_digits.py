"""PyTorch Lightning: the script is the same under taas-run, torchrun and SLURM.

    taas-run --gpus 16 docs/examples/lightning_digits.py                             # two nodes of eight
    taas-run --nnodes 2 --nproc-per-node 2 docs/examples/lightning_digits.py         # on the CPU

taas-run has started the processes: `devices` and `num_nodes` only have to say the same.
"""

import argparse
import os

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(lightning.LightningModule):
    """Two layers for images of 8 x 8."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        self.last_loss = 0.0

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        return nn.functional.cross_entropy(self.layers(images), labels)

    def on_train_batch_end(self, outputs: dict[str, torch.Tensor], *_: object) -> None:
        self.last_loss = float(outputs["loss"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def make_data(samples: int = 512) -> TensorDataset:
    """Ten patterns with noise, in the place of digits."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.rand(10, 8, 8, generator=generator)
    labels = torch.randint(10, (samples,), generator=generator)
    return TensorDataset(patterns[labels] + 0.3 * torch.randn(samples, 8, 8, generator=generator), labels)


def make_trainer(epochs: int) -> lightning.Trainer:
    gpu = torch.cuda.is_available()
    return lightning.Trainer(
        accelerator="gpu" if gpu else "cpu",
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        num_nodes=int(os.environ.get("GROUP_WORLD_SIZE", "1")),
        strategy="ddp",
        max_epochs=epochs,
        default_root_dir=os.environ.get("TAAS_OUTPUT_DIR", "."),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def main(arguments: list[str] | None = None) -> tuple[lightning.Trainer, Classifier]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    epochs = parser.parse_args(arguments).epochs
    lightning.seed_everything(1, verbose=False)
    trainer, model = make_trainer(epochs), Classifier()
    trainer.fit(model, DataLoader(make_data(), batch_size=16, shuffle=True))
    if trainer.is_global_zero:
        print(f"{trainer.world_size} ranks, {trainer.global_step} steps, loss {model.last_loss!r}", flush=True)
    return trainer, model


if __name__ == "__main__":
    main()
