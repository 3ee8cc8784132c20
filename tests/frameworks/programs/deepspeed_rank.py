"""The DeepSpeed example, and how its optimizer's state is split."""

import os
import sys

import torch

sys.path.insert(0, os.environ["EXAMPLES"])
import deepspeed_zero  # noqa: E402
from reporting import digest, report  # noqa: E402

# A kernel for inference on the CPU, which would be compiled before the first use: minutes, and nothing that training
# needs.
deepspeed_zero.deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False


def main():
    engine, loss = deepspeed_zero.main(["--steps", "5"])
    state = sum(
        tensor.numel()
        for values in engine.optimizer.state.values()
        for tensor in values.values()
        if isinstance(tensor, torch.Tensor) and tensor.dim()
    )
    report(
        int(os.environ["RANK"]),
        rank=engine.global_rank,
        local_rank=engine.local_rank,
        world=engine.world_size,
        stage=engine.zero_optimization_stage(),
        loss=loss.hex(),
        state=state,
        weights=sum(p.numel() for p in engine.module.parameters()),
        parameters=digest(engine.module.parameters()),
    )
    deepspeed_zero.deepspeed.comm.destroy_process_group()


if __name__ == "__main__":
    main()
