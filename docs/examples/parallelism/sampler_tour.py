"""Which sample goes to which rank: DistributedSampler with shuffle, drop_last, set_epoch and sizes that do not divide.

    python docs/examples/parallelism/sampler_tour.py --ranks 4                       # computes all ranks in one process
    taas-run --nproc-per-node 4 docs/examples/parallelism/sampler_tour.py            # each rank has computed its own

Both print the same.
"""

import argparse
import os
from collections import Counter
from typing import Any

import torch.distributed as dist
from torch.utils.data import DistributedSampler

Table = list[list[int]]  # the indices of each rank


def indices(samples: int, ranks: int, rank: int, *, epoch: int | None = None, **options: bool) -> list[int]:
    """What this rank's sampler yields; without an epoch nobody calls set_epoch()."""
    sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank, **options)
    if epoch is not None:
        sampler.set_epoch(epoch)
    return list(sampler)


def deal(samples: int, ranks: int, **options: Any) -> Table:
    """Of all ranks: as they tell it, or computed here."""
    if not dist.is_initialized():
        return [indices(samples, ranks, rank, **options) for rank in range(ranks)]
    table: Table = [[] for _ in range(ranks)]
    dist.all_gather_object(table, indices(samples, ranks, dist.get_rank(), **options))
    return table


def describe(samples: int, table: Table) -> str:
    """What became of samples that cannot be dealt evenly."""
    times = Counter(index for row in table for index in row)
    repeated = [str(index) for index in range(samples) if times[index] > 1]
    never = [str(index) for index in range(samples) if times[index] == 0]
    if repeated:
        return f"dealt more than once: {' '.join(repeated)}"
    return f"left out: {' '.join(never)}" if never else "each sample once"


def show(title: str, samples: int, table: Table) -> None:
    if dist.is_initialized() and dist.get_rank() > 0:
        return
    print(title)
    for rank, row in enumerate(table):
        print(f"  rank {rank}: {' '.join(f'{index:2}' for index in row)}")
    print(f"  {describe(samples, table)}", flush=True)


def tour(samples: int, ranks: int) -> None:
    even = samples - samples % ranks
    show(
        f"{samples} samples, no DistributedSampler: every rank reads them all", samples, [list(range(samples))] * ranks
    )
    stops: list[tuple[str, int, dict[str, Any]]] = [
        (f"{even} samples, shuffle=False", even, {"shuffle": False}),
        (f"{samples} samples, shuffle=False: the first ones fill up", samples, {"shuffle": False}),
        (f"{samples} samples, shuffle=False, drop_last=True", samples, {"shuffle": False, "drop_last": True}),
        (f"{samples} samples, shuffle=True, set_epoch(0)", samples, {"shuffle": True, "epoch": 0}),
        (f"{samples} samples, shuffle=True, set_epoch(1): another order", samples, {"shuffle": True, "epoch": 1}),
        (
            f"{samples} samples, shuffle=True, set_epoch() forgotten: epoch 0 again and again",
            samples,
            {"shuffle": True},
        ),
        (
            f"{samples} samples, shuffle=True, drop_last=True, set_epoch(1)",
            samples,
            {"shuffle": True, "drop_last": True, "epoch": 1},
        ),
    ]
    for title, size, options in stops:
        show(title, size, deal(size, ranks, **options))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--ranks", type=int, default=4, help="without a launcher: how many ranks there would be")
    options = parser.parse_args()
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    ranks = launched if launched > 1 else options.ranks
    if not 1 <= ranks <= options.samples:
        parser.error(f"--samples {options.samples}: has to be at least the number of ranks, {ranks}")
    if launched > 1:
        dist.init_process_group("gloo")
    tour(options.samples, ranks)
    if launched > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
