"""One stream for all ranks: taas.register(loader, shared=True), and --split."""

import json
import os
import subprocess
import sys

import pytest
import torch
from shared_script import BATCH, SAMPLES, SEED, Numbers
from test_scripts import HERE, TAAS_RUN, taas_run_to_the_end
from torch.utils.data import DataLoader
from waiting import DEADLINE_SECONDS

WORKERS = ("0", "1", "2", "4")
ONE, TWO = (("--cpus", cpus, "--data-cores", 1) for cpus in (1, 2))


def run(folder, ranks, *arguments, launch=()):
    return taas_run_to_the_end(
        folder, "--nproc-per-node", ranks, *launch, HERE / "shared_script.py", folder, *arguments
    )


def loops_of(folder, ranks):
    """By num_workers, of each rank: its loops, and how long the loader says that it is."""
    found = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]
    return {workers: [of_rank[workers] for of_rank in found] for workers in found[0]}


def check_is_dealt(ranks_loops):
    """Every index once over all ranks, and as many batches in each of them."""
    for each in zip(*(rank["loops"] for rank in ranks_loops)):
        assert sorted(index for batches in each for batch in batches for index in batch) == list(range(SAMPLES))
        assert {len(batches) for batches in each} == {rank["length"] for rank in ranks_loops}
        assert all(0 < len(batch) <= BATCH for batches in each for batch in batches)


def plain_loops(workers, ranks_before):
    """The same program's loops in one process without sharing, up to this loader."""
    torch.manual_seed(SEED)
    for other in WORKERS[: WORKERS.index(workers)]:
        for _ in range(2):
            list(DataLoader(Numbers(SAMPLES), batch_size=BATCH, shuffle=True, num_workers=int(other)))
    loader = DataLoader(Numbers(SAMPLES), batch_size=BATCH, shuffle=True, num_workers=int(workers))
    return [[batch.tolist() for batch in loader] for _ in range(2)]


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_every_index_comes_once_over_all_ranks(tmp_path, ranks):
    result = run(tmp_path, ranks)
    assert result.returncode == 0, result.stderr
    found = loops_of(tmp_path, ranks)
    for workers in WORKERS:
        check_is_dealt(found[workers])
    one_stream = [
        [batch for of_all in zip(*each) for batch in of_all] for each in zip(*(rank["loops"] for rank in found["2"]))
    ]
    whole = SAMPLES // BATCH // ranks * ranks - 2 * ranks
    for dealt, plain in zip(one_stream, plain_loops("2", ranks)):
        assert dealt[:whole] == plain[:whole], "the stream is the one that rank 0 has by itself"


def test_it_is_the_same_whoever_makes_the_batches_and_whoever_dies(tmp_path):
    ways = {}
    for name, arguments, launch in (("here", (), ()), ("elsewhere", (), TWO), ("killed", ("--kill",), TWO)):
        folder = tmp_path / name
        folder.mkdir()
        result = run(folder, 2, *arguments, launch=launch)
        assert result.returncode == 0, result.stderr
        ways[name] = loops_of(folder, 2)
    assert (tmp_path / "killed" / "killed").exists()
    assert ways["here"] == ways["elsewhere"] == ways["killed"]


def test_all_ranks_go_on_from_the_state_of_one(tmp_path):
    result = run(tmp_path, 2, "--resume")
    assert result.returncode == 0, result.stderr
    check_is_dealt(loops_of(tmp_path, 2)["0"])


def test_ranks_that_draw_another_order_are_refused(tmp_path):
    result = run(tmp_path, 2, "--unequal")
    assert result.returncode == 1
    assert "draws another order for loader 0 than rank" in result.stderr


def test_the_same_samples_in_all_ranks_are_told_of_once(tmp_path):
    command = [TAAS_RUN, "--nproc-per-node", "2", HERE / "shared_script.py", tmp_path, "--unshared"]
    result = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=True,
        env={**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"},
    )
    assert result.stderr.count("ranks 0, 1 had the same samples of loader 0 in the same order") == 1, result.stderr
    both = loops_of(tmp_path, 2)["0"]
    assert both[0] == both[1]


def test_split_shares_what_is_registered_without_a_word(tmp_path):
    result = run(tmp_path, 2, "--unshared", launch=("--split",))
    assert result.returncode == 0, result.stderr
    check_is_dealt(loops_of(tmp_path, 2)["0"])


def check_stream_is_dealt(ranks_loops):
    """Every sample once over all ranks, and as many batches in each of them."""
    for each in zip(*(rank["loops"] for rank in ranks_loops)):
        assert sorted(sample for batches in each for batch in batches for sample in batch) == list(range(SAMPLES))
        assert len({len(batches) for batches in each}) == 1
        assert all(0 < len(batch) <= BATCH for batches in each for batch in batches)


def test_every_sample_of_a_stream_comes_once_over_all_ranks(tmp_path):
    result = run(tmp_path, 4, "--stream", launch=ONE)
    assert result.returncode == 0, result.stderr
    found = loops_of(tmp_path, 4)
    for workers in WORKERS:
        check_stream_is_dealt(found[workers])
        first, second = found[workers][0]["loops"]
        assert first != second, "each loop has an order of its own"


def test_a_shared_stream_is_the_same_whoever_reads_it_and_whoever_dies(tmp_path):
    ways = {}
    for name, arguments, launch in (("one", (), ONE), ("two", (), TWO), ("killed", ("--kill",), TWO)):
        folder = tmp_path / name
        folder.mkdir()
        result = run(folder, 2, "--stream", *arguments, launch=launch)
        assert result.returncode == 0, result.stderr
        ways[name] = loops_of(folder, 2)
    assert (tmp_path / "killed" / "killed").exists()
    assert ways["one"] == ways["two"] == ways["killed"]


def test_all_ranks_go_on_with_a_stream_from_the_state_of_one(tmp_path):
    result = run(tmp_path, 2, "--stream", "--resume", launch=ONE)
    assert result.returncode == 0, result.stderr
    check_stream_is_dealt(loops_of(tmp_path, 2)["0"])


def test_ranks_that_read_other_samples_are_refused(tmp_path):
    result = run(tmp_path, 2, "--stream", "--split", launch=ONE)
    assert result.returncode == 1
    assert "reads other samples of loader 0 than rank" in result.stderr


def test_split_leaves_streams_as_they_are(tmp_path):
    result = run(tmp_path, 2, "--stream", "--unshared", launch=("--split",))
    assert result.returncode == 0, result.stderr
    for rank in loops_of(tmp_path, 2)["0"]:
        assert all(len(batches) == -(-SAMPLES // BATCH) for batches in rank["loops"])
