"""What it costs that copies to a device are compared with their source: the first 16 batches, and then one of a thousand.

    PYTHONPATH=build/release/python .venv/bin/python apps/bench/data/checked_copies.py

Copies are stood in for by one that is there already, so that all that is measured is the check. A table in Markdown: microseconds for
a batch that is not compared and for one that is, and what a batch costs over a long training as a part of a step of 10 ms.
"""

import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure  # noqa: E402

SHAPES = {"image": ((64, 3, 224, 224), "float32"), "digits": ((64, 1, 28, 28), "float32"), "tokens": ((64, 2048), "int64")}
STEP = 10_000  # microseconds


class Ready:
    def __init__(self, batch):
        self._copy = [each.clone() for each in batch]

    def start(self, batch):
        return batch

    def finish(self, started):
        return self._copy


def passed(copies, batch) -> float:
    began = time.perf_counter()
    copies.finish(copies.start(batch))
    return (time.perf_counter() - began) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="thousands of batches")
    options = parser.parse_args()
    measure.need("torch")
    measure.need("taas")
    import torch
    from taas.delivery import checked_copies
    first, every = checked_copies._FIRST, checked_copies._EVERY
    print("| batch | not compared, µs | compared, µs | of a step of 10 ms |\n|---|---|---|---|")
    for name, (shape, dtype) in SHAPES.items():
        batch = [torch.ones(shape, dtype=getattr(torch, dtype)), torch.arange(shape[0])]
        bare = Ready(batch)
        checked = checked_copies.CheckedCopies(bare)
        times = [passed(checked, batch) for _ in range(options.rounds * every)]
        compared = [took for number, took in enumerate(times) if number < first or number % every == 0]
        others = [took for number, took in enumerate(times) if number >= first and number % every]
        without = statistics.median(passed(bare, batch) for _ in range(every))
        rare, usual = statistics.median(compared), max(0.0, statistics.median(others) - without)
        print(f"| {name}, {sum(each.nbytes for each in batch) / 1e6:.1f} MB | {usual:.1f} | {rare:.0f} | {(usual + rare / every) / STEP:.2%} |")


if __name__ == "__main__":
    measure.run(main)
