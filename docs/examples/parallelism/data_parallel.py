"""nn.DataParallel: one process, which splits each batch over all GPUs that it sees.

    python docs/examples/parallelism/data_parallel.py
    CUDA_VISIBLE_DEVICES=0,1 python docs/examples/parallelism/data_parallel.py      # over two of them

Prints the sizes of each batch inside of the model, once for each part of it, and outside.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TellingModel(nn.Module):
    """A layer that prints what it was given and what it returns."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        output = self.layer(batch)
        print(f"  inside the model: input {tuple(batch.shape)}, output {tuple(output.shape)}")
        return output


def spread(model: nn.Module) -> nn.Module:
    """Puts the model on what is there, and says in one line whether its batches are split."""
    gpus = torch.cuda.device_count()
    if gpus > 1:
        print(f"{gpus} GPUs: each batch is split over them")
        return nn.DataParallel(model.cuda())
    print("one GPU: each batch stays whole" if gpus else "no GPU: each batch stays whole, on the CPU")
    return model.cuda() if gpus else model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=44)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    model = spread(TellingModel(6, 3))
    device = next(model.parameters()).device  # where batches begin and where outputs come back to
    loader = DataLoader(TensorDataset(torch.randn(options.samples, 6)), batch_size=options.batch_size, shuffle=True)
    for (batch,) in loader:
        output = model(batch.to(device))
        print(f"outside: input {tuple(batch.shape)}, output {tuple(output.shape)}")


if __name__ == "__main__":
    main()
