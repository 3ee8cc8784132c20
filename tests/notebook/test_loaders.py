"""Loaders that an earlier cell has registered: CPU machines make their batches, the first before there are ranks."""

import json

import pytest

REGISTER = """
import os, torch, taas
from torch.utils.data import DataLoader, Dataset

offset = 100

class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return index + offset, os.getpid()

data_loader = DataLoader(Numbers(), batch_size=4, shuffle=True)
taas.register(data_loader)
"""
TRAIN = """#!g2.8
#pragma taas --gpus 2 --cpus 1 --units 48 --pull seen,makers,me
torch.manual_seed(3)
seen, makers = [], set()
for values, pids in data_loader:
    seen += (values - offset).tolist()
    makers |= set(pids.tolist())
me = os.getpid()
"""


@pytest.mark.gate
def test_register_cell_pragma_cell_training_cell(kernel, project):
    kernel.run(REGISTER).check()
    kernel.run(TRAIN).check()
    seen, makers, me = eval(kernel.run("seen, makers, me").check().result)
    assert len(seen) == len(set(seen)) == 24, "--units counts the samples of both ranks"
    assert makers and me not in makers, "data workers made the batches"
    events = [
        json.loads(line) for line in (project / "taas-runs" / "latest" / "journal.jsonl").read_text().splitlines()
    ]
    names = [event.get("event") for event in events]
    assert names.index("data_prepared") < names.index("rank_spawned"), "before ranks run"
    assert max(event["batches"] for event in events if event.get("event") == "data_prepared") > 0


def test_the_order_is_the_plain_loaders(kernel):
    kernel.run(REGISTER).check()
    kernel.run(TRAIN).check()
    kernel.run(
        "torch.manual_seed(3); taas.unregister(data_loader); "
        "plain = [v for values, _ in data_loader for v in (values - offset).tolist()]"
    )
    assert kernel.run("seen == plain[:24]").check().result == "True"


def test_the_loop_ends_with_the_epoch_where_units_are_more_than_that(kernel):
    kernel.run(REGISTER).check()
    kernel.run(TRAIN.replace("--units 48", "--units 100000")).check()
    assert kernel.run("sorted(seen) == list(range(64)), me not in makers").check().result == "(True, True)"


def test_without_cpus_ranks_make_the_batches_themselves(kernel):
    kernel.run(REGISTER).check()
    kernel.run(TRAIN.replace("--cpus 1 --units 48 ", "")).check()
    assert kernel.run("len(seen), taas.is_registered(data_loader)").check().result == "(64, True)"


@pytest.mark.gate
def test_a_loader_that_cannot_be_captured_is_named(kernel, project):
    kernel.run(REGISTER + "data_loader.dataset.file = open('/dev/null')").check()
    done = kernel.run(TRAIN)
    assert done.error["ename"] == "CaptureError"
    assert (
        "data_loader.dataset.file (_io.TextIOWrapper)" in done.traceback
        and "--no-capture data_loader" in done.traceback
    )
    assert not (project / "taas-runs").exists()
