"""TensorFlow and JAX: no torch in the ranks."""

import re

from conftest import PROGRAMS, full_only, need, shapes, world_size


@shapes
def test_tensorflow(runner, shape):
    need("tensorflow")
    ranks = world_size(shape)
    told = runner.reported(runner.taas_run("--framework", "tf", *shape, PROGRAMS / "tensorflow_rank.py"), ranks)
    total = ranks * (ranks + 1) / 2
    for rank, each in enumerate(told):
        assert (each["type"], each["index"], each["replicas"]) == ("worker", rank, ranks)
        assert each["loss"] == 2.0 * total / ranks
        assert each["weight"] == 2.0 - 0.5 * total / ranks
        assert each["workers"] == told[0]["workers"]
    assert len(set(told[0]["workers"])) == ranks
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", worker) for worker in told[0]["workers"])


@full_only
def test_tensorflow_after_a_restart(runner):
    """The servers of the next generation open the same ports again."""
    need("tensorflow")
    program = runner.folder / "restarts.py"
    program.write_text(
        "import os, runpy, sys\n"
        f"sys.path.insert(0, {str(PROGRAMS)!r})\n"
        f"runpy.run_path({str(PROGRAMS / 'tensorflow_rank.py')!r}, run_name='__main__')\n"
        "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "    os._exit(3)\n"
    )
    result = runner.taas_run("--framework", "tf", "--nproc-per-node", 2, "--max-restarts", 1, program)
    assert [told["replicas"] for told in runner.reported(result, 2)] == [2, 2]


@shapes
def test_jax(runner, shape):
    need("jax")
    ranks = world_size(shape)
    told = runner.reported(runner.taas_run(*shape, PROGRAMS / "jax_rank.py"), ranks)
    for rank, each in enumerate(told):
        assert (each["processes"], each["index"], each["devices"], each["local_devices"]) == (ranks, rank, ranks, 1)
        assert each["total"] == ranks * (ranks + 1) / 2
    journal = (runner.folder / "taas-runs/latest/journal.jsonl").read_text()
    assert journal.count("rank_joined") == ranks, "the launcher knows who has come up"


def test_jax_without_a_store_of_the_launcher(runner):
    program = runner.folder / "program.py"
    program.write_text("import taas\ntaas.jax_initialize()\n")
    result = runner.taas_run("--nproc-per-node", 2, "--store", "rank0", program)
    assert result.returncode == 1
    assert "NoStore: no store of a launcher" in result.stderr


def test_jax_in_a_program_that_runs_alone(runner):
    program = runner.folder / "program.py"
    program.write_text("import sys, taas\ntaas.jax_initialize()\nprint('jax' in sys.modules)\n")
    assert runner.taas_run(program).stdout == "False\n"
