"""DeepSpeed with ZeRO stage 1: the optimizer's state is split over the ranks.

    taas-run --gpus 8 docs/examples/deepspeed_zero.py
    taas-run --nnodes 2 --nproc-per-node 2 docs/examples/deepspeed_zero.py           # on the CPU, with gloo

`deepspeed.init_distributed()` finds all that it looks for in the environment; its own launcher is not needed. On the
CPU it compiles a kernel of its own before the first run, which takes a minute.
"""

import argparse

import deepspeed
import torch
from torch import nn

CONFIGURATION = {
    "train_micro_batch_size_per_gpu": 16,
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,  # torch's own: DeepSpeed's are compiled when they are first used
}


def make_batch(step: int, rank: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Another one for each step and rank; the wanted answer is the sum of the inputs."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(16, 10, generator=generator)
    return inputs.to(device), inputs.sum(1, keepdim=True).to(device)


def main(arguments: list[str] | None = None) -> tuple[deepspeed.DeepSpeedEngine, float]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--local_rank", type=int, default=-1, help="given by the deepspeed launcher; not needed")
    steps = parser.parse_args(arguments).steps
    deepspeed.init_distributed()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIGURATION)
    loss = torch.zeros(1)
    for step in range(steps):
        inputs, wanted = make_batch(step, deepspeed.comm.get_rank(), engine.device)
        loss = nn.functional.mse_loss(engine(inputs), wanted)
        engine.backward(loss)
        engine.step()
    if deepspeed.comm.get_rank() == 0:
        print(f"{deepspeed.comm.get_world_size()} ranks, {steps} steps, loss {loss.item()!r}", flush=True)
    return engine, loss.item()


if __name__ == "__main__":
    main()
    deepspeed.comm.destroy_process_group()
