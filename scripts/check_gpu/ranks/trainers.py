"""accelerate and transformers' Trainer on the GPU, written as for torchrun.

usage: trainers.py accelerate

transformers
"""

import os
import sys

import torch


def by_accelerate() -> str:
    from accelerate import Accelerator

    accelerator = Accelerator()
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.DataLoader(torch.arange(256.0).reshape(64, 4) / 256, batch_size=2)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for batch in data:
        optimizer.zero_grad()
        accelerator.backward(model(batch).square().mean())
        optimizer.step()
    ranks = accelerator.gather(torch.tensor([accelerator.process_index], device=accelerator.device)).tolist()
    return f"{accelerator.distributed_type.value} {ranks == list(range(accelerator.num_processes))}"


def by_transformers() -> str:
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    sizes = {
        "vocab_size": 32,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    model = BertForSequenceClassification(BertConfig(**sizes))
    tokens = torch.randint(32, (128, 8), generator=torch.Generator().manual_seed(1))
    samples = [{"input_ids": row, "labels": row[0] % 2} for row in tokens]
    arguments = TrainingArguments(
        output_dir=os.environ.get("TAAS_OUTPUT_DIR", "."),
        per_device_train_batch_size=2,
        max_steps=3,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
    )
    steps = Trainer(model=model, args=arguments, train_dataset=samples).train().global_step
    return f"{arguments.device.type} {steps == 3}"


said = {"accelerate": by_accelerate, "transformers": by_transformers}[sys.argv[1]]()
if int(os.environ["RANK"]) == 0:
    print(f"FINISHED {said}", flush=True)
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
