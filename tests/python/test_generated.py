"""Pipelines that a seed draws: what is kept where, nested how, changed when.

Each gives the plain loader's batches, or is refused. With TAAS_FULL=1 there are 2,000 of them. TAAS_PIPELINES=17 or
TAAS_PIPELINES=0-500 takes these alone.
"""

import os
import random

import pytest
from differential.trial import faults_of
from differential.ways import registered
from generated.drawn import drawn_pipeline

FULL = bool(os.environ.get("TAAS_FULL"))
FIRST, _, LAST = os.environ.get("TAAS_PIPELINES", "0-1999" if FULL else "0-99").partition("-")
WAYS_OF_ONE = 2


@pytest.mark.parametrize("seed", range(int(FIRST), int(LAST or FIRST) + 1))
def test_registered_as_plain_or_refused(seed, machines):
    pipeline, is_possible = drawn_pipeline(seed)
    possible = [way for way in registered(pipeline, True) if is_possible(way) and (FULL or not way.start_method)]
    ways = random.Random(seed).sample(possible, k=min(WAYS_OF_ONE, len(possible)))
    if faults := faults_of(pipeline, machines, False, ways):
        pytest.fail("\n".join([pipeline.name, *faults]), pytrace=False)
