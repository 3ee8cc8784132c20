"""Many ranks and much output at once."""

from conftest import is_gone


def test_two_hundred_ranks(launcher):
    result = launcher.run("--gpus", 200, "--gpus-per-node", 50, "--oversubscribe", *launcher.ranks("*=exit:0"))
    assert result.returncode == 0, result.stderr


def test_two_hundred_ranks_stop_when_one_fails(launcher):
    result = launcher.run("--gpus", 200, "--gpus-per-node", 50, "--oversubscribe", *launcher.ranks("137=exit:9"))
    assert result.returncode == 9, result.stderr
    assert "rank 137" in result.stderr
    assert all(is_gone(int(path.read_text())) for path in launcher.barrier.glob("ready-0-*"))


def test_all_ranks_flood_and_every_byte_is_kept(launcher):
    result = launcher.run("--nproc-per-node", 8, *launcher.ranks("*=flood:3000000"))
    assert result.returncode == 0, result.stderr
    sizes = [path.stat().st_size for path in launcher.run_folder().rglob("rank-*.out")]
    assert sizes == [3000000] * 8
    assert len(result.stdout) == 3000000
