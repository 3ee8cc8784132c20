"""The chapter's lines for DeepSpeed and Lightning, within the smallest program that has what they use."""

import re

from conftest import need
from lightning_program import lightning_program
from pieces import piece

INITIALIZE = piece("chapter/deepspeed_initialize.txt").strip() + ")"  # the chapter has lost it

DEEPSPEED = f"""
import argparse
import deepspeed
import torch

# A kernel for inference on the CPU, which would be compiled before the first use and which training does not need.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
cmd_args = deepspeed.add_config_arguments(parser).parse_args()
{piece("chapter/deepspeed_init_distributed.py")}
torch.manual_seed(1)
model = torch.nn.Linear(4, 1)
params = model.parameters()
{INITIALIZE}
losses = []
for step in range(8):
    inputs = torch.randn(8, 4)
    loss = (model_engine(inputs) - inputs.sum(1, keepdim=True)).square().mean()
    model_engine.backward(loss)
    model_engine.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
assert optimize is model_engine.optimizer and model_engine.train_micro_batch_size_per_gpu() == 8
print("rank", deepspeed.comm.get_rank(), "of", deepspeed.comm.get_world_size(), flush=True)
deepspeed.comm.destroy_process_group()
"""

SETTINGS = """{"train_micro_batch_size_per_gpu": 8, "optimizer": {"type": "Adam", "params": {"lr": 0.1, "torch_adam": true}}}"""


def test_deepspeed_is_initialized_from_the_command_line(runner):
    need("deepspeed")
    (runner.folder / "train.py").write_text(DEEPSPEED)
    (runner.folder / "settings.json").write_text(SETTINGS)
    done = runner.taas_run("--gpus", 2, "train.py", "--deepspeed", "--deepspeed_config", "settings.json")
    assert done.returncode == 0, done.stderr
    logs = [(runner.folder / f"taas-runs/latest/generation-0/rank-{rank:04}.out").read_text() for rank in range(2)]
    assert [f"rank {rank} of 2" in log for rank, log in enumerate(logs)] == [True, True], logs


def test_lightning_on_eight_devices(runner):
    need("lightning")
    (runner.folder / "train.py").write_text(lightning_program(0))
    done = runner.taas_run("--gpus", 8, "--preload", "torch,torch._dynamo", "train.py")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^8 ranks on 1 machines?, (\d+) steps$", done.stdout, re.MULTILINE) == ["2"], done.stdout
