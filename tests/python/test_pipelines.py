"""Pipelines as strangers write them give the plain batches when registered, in order, or are refused with a line.

Those that need other people's libraries run with TAAS_FULL=1.
"""

import os

import pytest
from differential.pipeline import all_pipelines
from differential.trial import faults_of

FULL = bool(os.environ.get("TAAS_FULL"))
PIPELINES = {each.name: each for each in all_pipelines()}
IN_THE_GATE = [
    "everyday.shuffled_by_a_generator",
    "everyday.persistent_workers",
    "samplers.weighted",
    "samplers.buckets_by_size",
    "iterables.sharded_without_the_rest",
    "iterables.sharded_by_the_process_group",
    "collates.padded_sequences",
    "collates.collated_by_default",
    "storage.tokens_in_a_memmap",
    "storage.opened_by_worker_init_fn",
    "state_of_the_program.the_default_dtype",
    "trains_by_itself.lambdas_of_the_script",
]


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.gate) for name in IN_THE_GATE),
        *(name for name in PIPELINES if name not in IN_THE_GATE),
    ],
)
def test_registered_as_plain_or_refused(name, data_workers):
    pipeline = PIPELINES[name]
    if pipeline.needs and not FULL:
        pytest.skip("only in the full run (TAAS_FULL=1)")
    if pipeline.is_missing:
        pytest.skip(f"not installed: {pipeline.needs} (scripts/requirements-pipelines.txt, with TAAS_FULL=1)")
    if faults := faults_of(pipeline, data_workers):
        pytest.fail("\n".join(faults), pytrace=False)
