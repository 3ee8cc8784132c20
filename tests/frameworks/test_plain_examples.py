"""First examples of frameworks' documentation, with made-up data, on CPU ranks: they train one model, or it is said."""

import pytest
from conftest import TAAS_RUN, TWO_NODES, need

REPORT = """
import os, pathlib
def report(world, model):
    total = sum(float(each.detach().double().sum()) for each in model.parameters())
    pathlib.Path(os.environ["REPORTS"], os.environ["RANK"]).write_text(f"{world} {total!r}")
"""
ACCELERATE = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator

accelerator = Accelerator()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
training_dataloader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=4)
model, optimizer, training_dataloader = accelerator.prepare(model, optimizer, training_dataloader)
for inputs, targets in training_dataloader:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    accelerator.backward(loss)
    optimizer.step()
report(accelerator.num_processes, model)
"""
LIGHTNING = """
import lightning as L
from torch import nn, optim, rand, utils, zeros

class LitAutoEncoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 3), nn.ReLU(), nn.Linear(3, 16))

    def training_step(self, batch, batch_idx):
        x, _ = batch
        return nn.functional.mse_loss(self.net(x), x)

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=1e-3)

model = LitAutoEncoder()
loader = utils.data.DataLoader(utils.data.TensorDataset(rand(16, 16), zeros(16)))
trainer = L.Trainer(limit_train_batches=100, max_epochs=1)
trainer.fit(model, loader)
report(trainer.world_size, model)
"""
TRANSFORMERS = """
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

sizes = {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
model = BertForSequenceClassification(BertConfig(**sizes))
samples = [{"input_ids": row, "labels": row[0] % 2} for row in torch.randint(32, (32, 8))]
arguments = TrainingArguments(output_dir=os.environ["TAAS_OUTPUT_DIR"], max_steps=2, save_strategy="no", report_to=[])
Trainer(model=model, args=arguments, train_dataset=samples).train()
report(arguments.world_size, model)
"""
DEEPSPEED = """
import deepspeed, torch

model = torch.nn.Linear(4, 1)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
    "train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}}})
for _ in range(3):
    engine.backward(engine(torch.randn(2, 4)).sum())
    engine.step()
report(torch.distributed.get_world_size(), model)
"""
FABRIC = """
import lightning as L
import torch

fabric = L.Fabric()
fabric.launch()
model = torch.nn.Linear(4, 1)
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
fabric.backward(model(torch.ones(2, 4)).sum())
optimizer.step()
"""
TOGETHER = {"accelerate": ACCELERATE, "lightning": LIGHTNING, "transformers": TRANSFORMERS, "deepspeed": DEEPSPEED}
# Threads of gloo that outlive Python's end abort a rank that has done all its work.
LEAVE = """
import torch.distributed
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
"""
ALONE = {
    "accelerate, asked for its place first": (
        "accelerate",
        "import accelerate\naccelerate.PartialState()\n" + ACCELERATE,
        "call PartialState(cpu=True)",
    ),
    "accelerate, told otherwise": (
        "accelerate",
        'os.environ["ACCELERATE_USE_CPU"] = "0"\n' + ACCELERATE,
        "call PartialState(cpu=True)",
    ),
    "lightning, with devices": (
        "lightning",
        LIGHTNING.replace("Trainer(", "Trainer(devices='auto', "),
        "give Trainer or Fabric devices=",
    ),
    "fabric": ("lightning", FABRIC, "give Trainer or Fabric devices="),
    "a group of one": (
        "torch",
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
        "model = torch.nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "model(torch.ones(2, 4)).sum().backward()\n"
        "optimizer.step()\n",
        "call torch.distributed.init_process_group()",
    ),
}
RAY = "import ray.train, ray.train.torch\n"


def write(runner, text):
    program = runner.folder / "program.py"
    program.write_text(REPORT + text)
    return program


@pytest.mark.parametrize("framework", TOGETHER)
def test_it_trains_one_model(runner, framework):
    need(framework)
    result = runner.taas_run(*TWO_NODES, write(runner, TOGETHER[framework] + LEAVE))
    assert result.returncode == 0, result.stderr
    told = [(runner.reports / str(rank)).read_text().split() for rank in range(4)]
    assert [world for world, _ in told] == ["4"] * 4
    assert len({parameters for _, parameters in told}) == 1, told


@pytest.mark.parametrize("what", ALONE)
def test_ranks_that_train_alone_are_told_the_way_out_of_their_framework(runner, what):
    package, text, way = ALONE[what]
    need(package)
    result = runner.command(TAAS_RUN, "--nproc-per-node", 2, write(runner, text))
    assert result.returncode == 0, result.stderr
    hints = [line for line in result.stderr.splitlines() if "2 ranks trained " in line]
    assert len(hints) == 1 and way in hints[0], result.stderr


def test_several_ranks_of_ray_train_are_told_of_before_they_start(runner):
    """Each starts workers of its own, which may wait for ever: no hint at the end would be seen. Ray does not run."""
    program = write(runner, RAY)

    def said(*size, **variables):
        result = runner.taas_run(*size, "--dry-run", program, **variables)
        assert result.returncode == 0, result.stderr
        return "Ray Train" in result.stdout

    assert said("--nproc-per-node", 2)
    assert not said("--nproc-per-node", 1)
    assert not said("--nproc-per-node", 2, TAAS_HINTS="0")
