"""taas-run --loader with a program in C++: its data workers make the first batches before there is a rank."""

import os
import subprocess

import pytest
from torch.utils.data import DistributedSampler

TAAS_RUN, PROGRAM = os.environ["TAAS_RUN"], os.environ["TAAS_LOADER_PROGRAM"]
EXAMPLES = 32


def run(folder, *options, loaders=(), ranks=2, more=()):
    named = [*more, *(argument for loader in loaders for argument in ("--loader", loader))]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TAAS_", "TORCHELASTIC_"))}
    return subprocess.run(
        [
            TAAS_RUN,
            "--nproc-per-node",
            str(ranks),
            "--cpus",
            "1",
            "--data-cores",
            "1",
            *named,
            PROGRAM,
            folder,
            *options,
        ],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def lines_of(folder):
    return (folder / "log").read_text().splitlines() if (folder / "log").exists() else []


def labels_of(folder, rank):
    return [int(word) for word in (folder / f"labels-{rank}").read_text().split()]


def order_of(rank, ranks, seed=0):
    return list(DistributedSampler(range(EXAMPLES), ranks, rank, seed=seed))


def test_all_batches_are_made_before_there_is_a_rank_and_not_again(tmp_path):
    done = run(tmp_path, loaders=("train", "test set"))
    assert done.returncode == 0, done.stderr
    assert lines_of(tmp_path)[: 2 * EXAMPLES] == ["get"] * 2 * EXAMPLES
    assert sorted(lines_of(tmp_path)[2 * EXAMPLES :]) == ["rank 0", "rank 1"]
    for rank in range(2):
        assert labels_of(tmp_path, rank) == 2 * order_of(rank, 2)
    assert "prepared train,test set: 24 batches" in done.stderr


def stream_of(rank, ranks, workers=2, batch=3):
    """The batches of the rank's shards in turn."""
    shards = [list(range(rank * workers + worker, EXAMPLES, ranks * workers)) for worker in range(workers)]
    turns = [shard[start : start + batch] for start in range(0, EXAMPLES, batch) for shard in shards]
    return [label for labels in turns for label in labels]


@pytest.mark.parametrize("loaders", [(), ("stream",)])
def test_each_rank_has_its_part_of_a_stream_prepared_or_not(tmp_path, loaders):
    done = run(tmp_path, "--stream", loaders=loaders)
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        assert labels_of(tmp_path, rank) == stream_of(rank, 2)
    lines = lines_of(tmp_path)
    assert lines.count("get") == EXAMPLES
    assert not loaders or lines[:EXAMPLES] == ["get"] * EXAMPLES


@pytest.mark.parametrize("ranks", [2, 3])
def test_what_one_rank_lacks_is_left_out_by_all(tmp_path, ranks):
    done = run(tmp_path, "--faulty", ranks=ranks, more=("--data-on-error", "skip"))
    assert done.returncode == 0, done.stderr
    orders = [order_of(rank, ranks) for rank in range(ranks)]
    culprit = next(rank for rank in range(ranks) if 5 in orders[rank])
    place = orders[culprit].index(5) // 2 * 2
    for rank in range(ranks):
        assert labels_of(tmp_path, rank) == orders[rank][:place] + orders[rank][place + 2 :]
    assert f"as rank {culprit} lacks its own" in done.stderr


def test_without_loader_they_are_made_when_ranks_ask(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert lines_of(tmp_path)[0].startswith("rank")
    assert labels_of(tmp_path, 0) == 2 * order_of(0, 2)


def test_a_prediction_that_was_wrong_changes_nothing_but_the_time(tmp_path):
    done = run(tmp_path, "--reseed", loaders=("train",))
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        assert labels_of(tmp_path, rank) == 2 * order_of(rank, 2, seed=1)
    assert lines_of(tmp_path).count("get") == 3 * EXAMPLES
    assert done.stderr.count("train: ranks ask for other batches than those that were prepared") == 1


@pytest.mark.parametrize("option", [(), ("--uncaught",)])
@pytest.mark.parametrize(
    "name, line",
    [
        (
            "nothing",
            "no loader is called 'nothing': serve_data was given 'train', 'test set', 'other', 'stream', 'faulty'",
        ),
        ("other", "'other' cannot be prepared, since nobody knows its order: serve_data({{loader, sampler_of_rank}})"),
    ],
)
def test_what_cannot_be_prepared_ends_the_run_in_one_line(tmp_path, name, line, option):
    done = run(tmp_path, *option, loaders=(name,))
    assert done.returncode == 2, done.stderr
    assert f"--loader {name}: {line}" in done.stderr
    assert not lines_of(tmp_path)
