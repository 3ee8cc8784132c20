"""One rank of first_batch.py: when its first batch comes, and what the boundary between two epochs costs."""

import json
import os
import sys
import time

import torch

import prepared

EPOCHS = 4


def timed_epoch(loader) -> tuple:
    """How long each batch was waited for, and the end of the loop."""
    waits, before = [], time.perf_counter()
    for _ in loader:
        now = time.perf_counter()
        waits.append(now - before)
        before = time.perf_counter()
    return waits, time.perf_counter() - before


def main():
    way = sys.argv[1]
    loader = prepared.loader
    if way == "taas":
        import taas

        taas.register(loader)
    else:
        loader = torch.utils.data.DataLoader(
            prepared.dataset,
            batch_size=prepared.BATCH,
            sampler=prepared.sampler,
            num_workers=2,
            persistent_workers=way == "persistent",
        )
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(64)))  # a start-up as programs have it
    del model
    epochs, ends = [], []
    for epoch in range(EPOCHS):
        prepared.sampler.set_epoch(epoch)
        waits, end = timed_epoch(loader)
        epochs.append(waits)
        ends.append(end)
    steady = sorted(wait for epoch in epochs for wait in epoch[1:])
    if os.environ.get("RANK", "0") == "0":
        print(
            json.dumps(
                {
                    "first_batch_seconds": epochs[0][0],
                    "boundary_seconds": [end + epoch[0] for end, epoch in zip(ends, epochs[1:])],
                    "batch_seconds": steady[len(steady) // 2],
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
