"""The training loop that endure.py disturbs: writes down each batch, and a checkpoint every few batches.

endure_rank.py RECORD CHECKPOINT BATCHES. A batch is on record before the checkpoint that covers it; what a killed
process put on record after its last checkpoint is taken back when it starts again, as a model would be.
"""

import hashlib
import os
import pathlib
import sys
import time

import numpy
import torch

import taas

BATCH = 8
CHECKPOINT_EVERY = 10


class Augmented(torch.utils.data.Dataset):
    """Randomness of all three kinds in each sample, and some work."""

    def __init__(self, length: int):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.rand(1024) + index, numpy.random.rand(4), index


def line(number: int, batch) -> str:
    images, extras, indices = batch
    content = hashlib.sha256(images.numpy().tobytes() + extras.numpy().tobytes()).hexdigest()
    return f"{number} {' '.join(str(index) for index in indices.tolist())} {content}\n"


def write_whole(path: pathlib.Path, state: dict):
    new = path.with_suffix(".new")
    torch.save(state, new)
    os.replace(new, path)


def main():
    record, checkpoint, batches = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(11)
    loader = torch.utils.data.DataLoader(
        Augmented(batches * BATCH), batch_size=BATCH, shuffle=True, generator=generator
    )
    taas.register(loader)
    done = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=False)
        loader.load_state_dict(state["loader"])
        done = state["done"]
    kept = record.read_text().splitlines(keepends=True)[:done] if record.exists() else []
    record.write_text("".join(kept))
    with open(record, "a", buffering=1, encoding="ascii") as file:
        for batch in loader:
            file.write(line(done, batch))
            done += 1
            if done % CHECKPOINT_EVERY == 0:
                write_whole(checkpoint, {"loader": loader.state_dict(), "done": done})
    record.with_suffix(".end").touch()


if __name__ == "__main__":
    main()
