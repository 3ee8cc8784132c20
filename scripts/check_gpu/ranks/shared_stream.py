"""Prints the indices that this rank has got of a stream that all ranks share."""

import json
import os

import torch
from torch.utils.data import DataLoader, TensorDataset

import taas

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
loader = DataLoader(TensorDataset(torch.arange(1000)), batch_size=16, shuffle=True)
taas.register(loader, shared=True, device=device)

if __name__ == "__main__":
    indices = []
    for (batch,) in loader:
        assert batch.device == device, f"a batch is on {batch.device}"
        indices += batch.tolist()
    print(f"INDICES {json.dumps(indices)}", flush=True)
