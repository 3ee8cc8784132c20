"""DeepSpeed is given its settings by the command line: deepspeed_arguments.py --deepspeed --deepspeed_config FILE."""

import argparse

import deepspeed
import torch

# A kernel for inference on the CPU, which would be compiled before the first use and which training does not need.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
parser.add_argument("--local_rank", type=int, default=-1)
arguments = parser.parse_args()
deepspeed.init_distributed()
torch.manual_seed(1)
line = torch.nn.Linear(4, 1)
engine, optimizer, *_ = deepspeed.initialize(arguments, line, model_parameters=line.parameters())
losses = []
for step in range(8):
    inputs = torch.randn(8, 4)
    loss = (engine(inputs) - inputs.sum(1, keepdim=True)).square().mean()
    engine.backward(loss)
    engine.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
assert optimizer is engine.optimizer and engine.train_micro_batch_size_per_gpu() == 8
print("rank", deepspeed.comm.get_rank(), "of", deepspeed.comm.get_world_size(), flush=True)
deepspeed.comm.destroy_process_group()
