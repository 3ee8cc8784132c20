"""The rank of slow_source.py.

The clock starts when all data workers are there; each batch is compared with the server's.
"""

import json
import os
import pathlib
import sys
import time
import urllib.request

import object_server
import taas
import torch
from object_dataset import ObjectDataset
from torch.utils.data import DataLoader, Subset

BATCH = 4
WARM = 0.25  # of the batches come before the clock starts
URL, MACHINES = os.environ["BENCH_URL"], int(os.environ["BENCH_MACHINES"])


def served(first: int = 0) -> list:
    """How many objects each connection from the `first` on was sent.

    A data worker has one connection for each loader.
    """
    with urllib.request.urlopen(f"{URL}/served") as answer:
        return json.load(answer)[first:]


def count_workers(first: int) -> int:
    return sum(count > 0 for count in served(first))


def wait_for_machines(dataset: ObjectDataset):
    """Python and torch are imported in all of them, and they are connected."""
    first = len(served())
    with taas.register(DataLoader(Subset(dataset, range(4 * MACHINES)))) as loader:
        while count_workers(first) < MACHINES:
            for _ in loader:
                pass


def check(images: torch.Tensor, labels: torch.Tensor, number: int):
    """The batch is the `number`th, to the bit."""
    for place in range(BATCH):
        wanted = object_server.content(number * BATCH + place)
        pixels = torch.frombuffer(bytearray(wanted[1:]), dtype=torch.uint8).to(torch.float32) / 255
        if int(labels[place]) != wanted[0] or not torch.equal(images[place], pixels):
            sys.exit(f"batch {number}: object {number * BATCH + place} is not what the server has")


def measured(loader: DataLoader) -> dict:
    first, count = int(len(loader) * WARM), 0
    began = time.perf_counter()
    for images, labels in loader:
        check(images, labels, count)
        if count == first:
            began = time.perf_counter()
        count += 1
    took = time.perf_counter() - began
    return {"batches": count, "steps_per_second": (count - 1 - first) / took}


def main():
    torch.set_num_threads(1)
    dataset = ObjectDataset(URL, int(os.environ["BENCH_BATCHES"]) * BATCH)
    wait_for_machines(dataset)
    connections = len(served())
    with taas.register(DataLoader(dataset, batch_size=BATCH)) as loader:
        result = measured(loader)
    result["objects_by_worker"] = [count for count in served(connections) if count > 0]
    pathlib.Path(os.environ["BENCH_RESULT"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
