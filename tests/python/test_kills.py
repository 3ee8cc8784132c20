"""The kill test: workers die all the time, and nothing is lost, doubled or in another order. 50 for each dataset.

Among the datasets are those that depend on who makes a batch: on the order of a set of strings, on the rank's variables
and on its process group.
"""

import os
import random
import signal
import time

import pytest
from differential.child import run_all
from differential.looks import looks_of
from differential.process_state import seed
from pipelines import collates, iterables, samples
from taas import register
from taas.delivery import delivery, pool
from torch.utils.data import DataLoader

DEATHS = 50
BATCHES = 3 * DEATHS


class Slowly:
    """The workers are behind the loop, so that a death takes a batch with it."""

    def __iter__(self):
        for row in super().__iter__():
            time.sleep(0.0005)
            yield row


class SlowByVariables(Slowly, iterables.RankedByVariables):
    pass


class SlowByGroup(Slowly, iterables.RankedByGroup):
    pass


def words(index):
    time.sleep(0.0005)
    chosen = {f"word {number} of {index}" for number in range(40)}
    return list(chosen)[:3], random.random()


def by_hash():
    return DataLoader(samples.Made(words, 4 * BATCHES), 4, shuffle=True, num_workers=3, collate_fn=list)


def by_variables():
    iterables.be_rank(2, 3)
    return DataLoader(SlowByVariables(12 * BATCHES), 4, num_workers=2)


def by_group():
    iterables.be_rank(1, 2)
    iterables.join_group(1, 2)
    return DataLoader(SlowByGroup(11 * BATCHES), 4, num_workers=2)


def by_random_numbers():
    return DataLoader(
        samples.Made(collates.text, 4 * BATCHES), 4, shuffle=True, num_workers=2, collate_fn=collates.mixed_up
    )


DATASETS = [by_hash, by_variables, by_group, by_random_numbers]


def looped(make, deaths):
    """What the loop saw, and how many workers died."""
    os.environ["TAAS_DATA_WORKERS"] = "3" if deaths else "0"
    pool._DEATHS_AT_ONCE = deaths + 1  # workers that die often are started slowly otherwise
    seed()
    seen, killed, chosen = [], 0, random.Random(5)
    with register(make()) as loader:
        for number, batch in enumerate(loader):
            seen.append(looks_of(batch))
            if killed < deaths and number % 2:
                os.kill(
                    chosen.choice(next(iter(delivery._deliveries.values())).pids()),
                    chosen.choice((signal.SIGKILL, signal.SIGTERM)),
                )
                killed += 1
    return seen, killed


@pytest.mark.parametrize("make", DATASETS)
def test_nothing_is_lost_doubled_or_reordered(make):
    results = run_all({deaths: lambda deaths=deaths: looped(make, deaths) for deaths in (0, DEATHS)}, 300)
    (undisturbed, _), (seen, killed) = results[0].value, results[DEATHS].value
    assert len(undisturbed) >= BATCHES - 2 and killed == DEATHS
    assert seen == undisturbed
