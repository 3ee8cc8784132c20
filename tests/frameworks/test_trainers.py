"""Lightning and DeepSpeed: the examples train the same model under taas-run and under torchrun, to the last bit."""

from conftest import EXAMPLES, PROGRAMS, TWO_NODES, need, shapes, world_size


def both(runner, shape, program):
    """The reports of the ranks below taas-run, and of as many below torchrun on one node."""
    ranks, variables = world_size(shape), {"EXAMPLES": str(EXAMPLES)}
    ours = runner.reported(runner.taas_run(*shape, PROGRAMS / program, **variables), ranks)
    options = "--standalone", "--nproc-per-node", ranks
    return ours, runner.reported(runner.torchrun(*options, PROGRAMS / program, **variables), ranks)


@shapes
def test_lightning(runner, shape):
    need("lightning")
    ours, theirs = both(runner, shape, "lightning_rank.py")
    local = 2 if shape == TWO_NODES else len(ours)
    for rank, told in enumerate(ours):
        assert told["environment"] == "TorchElasticEnvironment"
        assert told["at_import"] == told["global_rank"] == rank
        assert (told["node_rank"], told["local_rank"], told["world"]) == (rank // local, rank % local, len(ours))
        assert told["steps"] == 2 * 512 // 16 // len(ours)
    assert [told["loss"] for told in ours] == [told["loss"] for told in theirs]
    assert {told["parameters"] for told in ours + theirs} == {ours[0]["parameters"]}


@shapes
def test_deepspeed(runner, shape):
    need("deepspeed")
    ours, theirs = both(runner, shape, "deepspeed_rank.py")
    local = 2 if shape == TWO_NODES else len(ours)
    for rank, told in enumerate(ours):
        assert (told["rank"], told["local_rank"], told["world"], told["stage"]) == (rank, rank % local, len(ours), 1)
        assert told["state"] < 2 * told["weights"], (
            "Adam keeps two numbers for each weight, and this rank a part of them"
        )
    assert [told["loss"] for told in ours] == [told["loss"] for told in theirs]
    assert {told["parameters"] for told in ours + theirs} == {ours[0]["parameters"]}


def test_transformers_trainer_with_data_workers(runner):
    need("transformers", "accelerate")
    program = PROGRAMS / "trainer_rank.py"
    plain = runner.reported(runner.taas_run("--gpus", 2, program), 2)
    registered = runner.reported(runner.taas_run("--gpus", 2, "--cpus", 2, "--data-cores", 1, program, "registered"), 2)
    assert registered == plain
    assert plain[0]["steps"] == 3 * 32 // 4


def test_lightning_is_told_of_its_devices(runner):
    """What torch alone imports is imported once."""
    need("lightning")
    done = runner.taas_run("--gpus", 8, "--preload", "torch,torch._dynamo", PROGRAMS / "lightning_devices.py", 8, 1)
    assert done.returncode == 0, done.stderr
    assert "8 ranks on 1 machines, 2 steps\n" in done.stdout


def test_deepspeed_reads_its_arguments(runner):
    need("deepspeed")
    settings = runner.folder / "settings.json"
    settings.write_text(
        '{"train_micro_batch_size_per_gpu": 8, '
        '"optimizer": {"type": "Adam", "params": {"lr": 0.1, "torch_adam": true}}}'
    )
    done = runner.taas_run(
        "-t", 3, "--gpus", 2, PROGRAMS / "deepspeed_arguments.py", "--deepspeed", "--deepspeed_config", settings
    )
    assert done.returncode == 0, done.stderr
    assert all(f"rank {rank} of 2" in done.stdout for rank in range(2)), done.stdout
