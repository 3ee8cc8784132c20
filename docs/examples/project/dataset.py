"""The data. Add your own dataset to DATASETS."""

import torch
from torch.utils.data import Dataset


class DummyDataset(Dataset):
    """Made up: vectors, and which of ten random directions each is nearest to. The same in every process."""

    def __init__(self, samples: int, features: int = 16) -> None:
        generator = torch.Generator().manual_seed(0)
        directions = torch.randn(10, features, generator=generator)
        self.inputs = torch.randn(samples, features, generator=generator)
        self.labels = (self.inputs @ directions.T).argmax(1)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[index], self.labels[index]


DATASETS = {"dummy": DummyDataset}
