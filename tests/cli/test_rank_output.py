"""--rank-output: what becomes of files of ranks other than 0."""

import pytest

WRITES = """import os, pathlib, sys
rank, folder = os.environ["RANK"], pathlib.Path(os.environ["TAAS_OUTPUT_DIR"])
for name in ("model.pt", f"shard-{rank}.pt"):
    (folder / name).write_text(rank)
print(rank, (folder / "model.pt").read_text(), file=sys.stderr)
"""


def published(launcher):
    folder = launcher.folder / "taas-runs/latest/output"
    return {path.name: path.read_text() for path in folder.iterdir()}


def run(launcher, *arguments, ranks=3, program=WRITES):
    result = launcher.run("--nproc-per-node", ranks, *arguments, launcher.python(program))
    if "no Landlock" in result.stderr:
        pytest.skip("this kernel has no Landlock")
    return result


@pytest.mark.gate
def test_by_default_all_files_are_published(launcher):
    """Checkpoints of many ranks are in several files."""
    assert run(launcher, ranks=2).returncode == 0
    assert set(published(launcher)) == {"model.pt", "shard-0.pt", "shard-1.pt"}


@pytest.mark.gate
def test_private_files_are_dropped_where_rank_0_has_the_same_and_kept_otherwise(launcher):
    result = run(launcher, "--rank-output", "private", "-t", 3)
    assert result.returncode == 0, result.stderr
    assert published(launcher) == {"model.pt": "0", "shard-0.pt": "0"}
    assert {f"{rank} {rank}" for rank in range(3)} <= {line.split("] ")[-1] for line in result.stderr.splitlines()}, (
        result.stderr
    )
    private = launcher.folder / "taas-runs/latest/private"
    assert sorted(str(path.relative_to(private)) for path in private.rglob("*") if path.is_file()) == [
        "rank-0001/output/shard-1.pt",
        "rank-0002/output/shard-2.pt",
    ]
    assert "ranks 1-2 wrote 2 files of the same names as rank 0's, which were dropped\n" in result.stderr
    assert "ranks 1-2 wrote 2 files that rank 0 did not: not published, but kept in " in result.stderr


def test_private_folders_leave_nothing_behind_when_nobody_wrote(launcher):
    result = run(launcher, "--rank-output", "private", program="print('hi')")
    assert result.returncode == 0 and "wrote" not in result.stderr, result.stderr
    assert not (launcher.folder / "taas-runs/latest/private").exists()


@pytest.mark.gate
def test_none_refuses_writes_of_other_ranks_and_says_so_once(launcher):
    result = run(launcher, "--rank-output", "none")
    assert result.returncode == 1
    assert "PermissionError" in result.stderr
    assert (
        result.stderr.count("--rank-output none makes the folder of TAAS_OUTPUT_DIR read-only for ranks other than 0")
        == 1
    )
    assert set(published(launcher)) <= {"model.pt", "shard-0.pt"}


@pytest.mark.gate
def test_none_lets_rank_0_write(launcher):
    guarded = WRITES.replace("rank,", "if os.environ['RANK'] != '0': sys.exit()\nrank,", 1)
    result = run(launcher, "--rank-output", "none", program=guarded)
    assert result.returncode == 0, result.stderr
    assert published(launcher) == {"model.pt": "0", "shard-0.pt": "0"}


def test_private_files_are_possible_in_a_protected_folder(launcher):
    result = run(launcher, "--protect", ".", "--rank-output", "private")
    assert result.returncode == 0, result.stderr
    assert published(launcher) == {"model.pt": "0", "shard-0.pt": "0"}


def test_another_word_is_refused(launcher):
    result = launcher.run("--rank-output", "some", "true")
    assert result.returncode == 2 and "--rank-output some: not one of all, private, none" in result.stderr, (
        result.stderr
    )
