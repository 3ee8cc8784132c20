"""Slow data workers and slow samples: throughput and the longest wait of a loop whose batches come in order.

Work is waiting (time.sleep), so that four workers are four workers on two cores as well. Side by side: torch's
DataLoader with as many worker processes, and as many of ours, all on this machine.
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure  # noqa: E402

measure.need("torch", "numpy", "cloudpickle")

import contenders  # noqa: E402
import torch  # noqa: E402

WORKERS = 4
SLOWNESS = 10
SLOW_SAMPLE_EVERY, SLOW_SAMPLE = 100, 50
BATCH = 8
SAMPLE_SECONDS = 0.002


class Waiting(torch.utils.data.Dataset):
    """Each sample takes SAMPLE_SECONDS; `slow_samples`: one of a hundred takes 50 times as long."""

    def __init__(self, length: int, slow_samples: bool):
        self.length, self.slow_samples = length, slow_samples

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        slow = SLOW_SAMPLE if self.slow_samples and index % SLOW_SAMPLE_EVERY == 7 else 1
        time.sleep(SAMPLE_SECONDS * slow * float(os.environ.get("BENCH_SLOWNESS", "1")))
        return torch.full((1024,), index)


def slow_first_worker(worker: int):
    """For torch's DataLoader, whose workers share one environment at their start."""
    if worker == 0:
        os.environ["BENCH_SLOWNESS"] = str(SLOWNESS)


def timed_loop(loader, batches: int) -> dict:
    """From the first batch on, so that the start of the workers does not count."""
    waits, before = [], time.perf_counter()
    for number, batch in enumerate(loader):
        if batch[0, 0] != number * BATCH:
            sys.exit(f"batch {number} is out of order")
        waits.append(time.perf_counter() - before)
        before = time.perf_counter()
    if len(waits) != batches:
        sys.exit(f"{len(waits)} batches instead of {batches}")
    return {"batches_per_second": (batches - 1) / sum(waits[1:]), "longest_wait_seconds": max(waits[1:])}


def ours(slow_worker: bool, slow_samples: bool, batches: int, workers: int = WORKERS) -> dict:
    import taas

    loader = torch.utils.data.DataLoader(Waiting(batches * BATCH, slow_samples), batch_size=BATCH)
    with contenders.workers_here(workers, {"BENCH_SLOWNESS": str(SLOWNESS)} if slow_worker else None):
        with taas.register(loader):
            return timed_loop(loader, batches)


def torchs(slow_worker: bool, slow_samples: bool, batches: int) -> dict:
    return timed_loop(
        torch.utils.data.DataLoader(
            Waiting(batches * BATCH, slow_samples),
            batch_size=BATCH,
            num_workers=WORKERS,
            prefetch_factor=4,
            worker_init_fn=slow_first_worker if slow_worker else None,
        ),
        batches,
    )


def in_a_process_of_its_own(way, *arguments) -> dict:
    """A process takes part in one run only."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as process:
        return process.submit(way, *arguments).result()


def sum_of_speeds(slow_worker: bool, slow_samples: bool, alone: float) -> float:
    """Of the workers, when one that is not slow makes `alone` batches a second of samples that are not slow."""
    if slow_samples:
        seconds = 1 / alone + BATCH * SAMPLE_SECONDS * (SLOW_SAMPLE - 1) / SLOW_SAMPLE_EVERY
        return WORKERS / seconds
    return alone * (WORKERS - 1 + 1 / SLOWNESS if slow_worker else WORKERS)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=pathlib.Path, default=pathlib.Path("build/release/python"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batches", type=int, default=500)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    sys.path.insert(0, str(options.package.resolve()))
    results, rows = {}, []
    for case, (slow_worker, slow_samples) in {
        "one of 4 workers 10 times slower": (True, False),
        "1 % of samples 50 times slower": (False, True),
    }.items():
        samples, alone = {"taas": [], "DataLoader": []}, []
        for number in range(options.rounds):
            for name in measure.rotated(samples, number):
                way = ours if name == "taas" else torchs
                samples[name].append(in_a_process_of_its_own(way, slow_worker, slow_samples, options.batches))
            alone.append(in_a_process_of_its_own(ours, False, False, options.batches // WORKERS, 1))
        limit = sum_of_speeds(slow_worker, slow_samples, max(one["batches_per_second"] for one in alone))
        results[case] = {"sum_of_speeds": limit, "one_worker": alone, **samples}
        for name, values in samples.items():
            share = measure.summary([v["batches_per_second"] / limit for v in values])
            wait = measure.summary([v["longest_wait_seconds"] for v in values])
            rows.append(
                [
                    case,
                    name,
                    f"{share['median']:.2f} ({share['min']:.2f} to {share['max']:.2f})",
                    measure.milliseconds(wait),
                ]
            )
    measure.report(
        "slow workers, slow samples",
        options,
        results,
        rows,
        ["case", "way", "share of the sum of speeds", "longest wait"],
        [f"a sample takes {SAMPLE_SECONDS * 1e3:.0f} ms, a slow one {SAMPLE_SECONDS * SLOW_SAMPLE * 1e3:.0f} ms"],
    )


if __name__ == "__main__":
    measure.run(main)
