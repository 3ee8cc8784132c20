"""torch.distributed and Hugging Face's stack: programs written for torchrun, at every shape."""

import pytest

from conftest import EIGHT_RANKS, FULL, PROGRAMS, TWO_NODES, need, shapes, world_size

# What other launchers may have left in the environment: what the run says counts.
LEFT_OVER = {
    "OMPI_COMM_WORLD_SIZE": "3",
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "2",
    "PMI_SIZE": "3",
    "PMI_RANK": "1",
    "MPI_LOCALRANKID": "1",
    "SLURM_PROCID": "7",
    "SLURM_LOCALID": "7",
    "LOCAL_RANK": "-1",
}


WAYS = [(TWO_NODES, "env"), (EIGHT_RANKS, "tcp"), *([(TWO_NODES, "tcp"), (EIGHT_RANKS, "none")] if FULL else [])]


@pytest.mark.parametrize("shape, way", WAYS)
def test_init_methods_detection_and_local_ranks(runner, shape, way):
    need("torch")
    ranks = world_size(shape)
    local = 2 if shape == TWO_NODES else ranks
    told = runner.reported(runner.taas_run(*shape, PROGRAMS / "torch_rank.py", way), ranks)
    for rank, each in enumerate(told):
        assert each == {
            "total": ranks * (ranks + 1) / 2,
            "rank": rank,
            "world": ranks,
            "launched": True,
            "local_rank": rank % local,
            "threads": 1,
        }


CONFIGURED = {"ACCELERATE_MIXED_PRECISION": "bf16"}  # what `accelerate config` would do is environment


@shapes
def test_accelerate_and_transformers(runner, shape):
    need("accelerate", "transformers")
    ranks = world_size(shape)
    local = 2 if shape == TWO_NODES else ranks
    result = runner.taas_run(*shape, PROGRAMS / "huggingface_rank.py", **LEFT_OVER, **CONFIGURED)
    told = runner.reported(result, ranks)
    for rank, each in enumerate(told):
        accelerate, transformers = each["accelerate"], each["transformers"]
        assert (accelerate["type"], accelerate["processes"]) == ("MULTI_CPU", ranks)
        assert (accelerate["index"], accelerate["local_index"]) == (rank, rank % local)
        assert accelerate["precision"] == "bf16"
        assert accelerate["gathered"] == list(range(ranks)) and accelerate["batches"] == 8 // ranks
        assert (transformers["world"], transformers["index"], transformers["local_index"]) == (
            ranks,
            rank,
            rank % local,
        )
        assert transformers["is_zero"] == (rank == 0) and transformers["steps"] == 3
    assert len({each["accelerate"]["parameters"] for each in told}) == 1, "data parallel: all ranks train one model"
    assert len({each["transformers"]["parameters"] for each in told}) == 1
