"""accelerate, then transformers' Trainer with a tiny model of random weights, in one process."""

import os
import warnings

import torch
from reporting import digest, report

warnings.filterwarnings("ignore")


def by_accelerate() -> dict:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.DataLoader(torch.arange(64.0).reshape(16, 4) / 64, batch_size=2)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    batches = 0
    for batch in data:
        optimizer.zero_grad()
        accelerator.backward(model(batch).square().mean())
        optimizer.step()
        batches += 1
    ranks = accelerator.gather(torch.tensor([accelerator.process_index]))
    return {
        "type": accelerator.distributed_type.value,
        "processes": accelerator.num_processes,
        "index": accelerator.process_index,
        "local_index": accelerator.local_process_index,
        "batches": batches,
        "precision": accelerator.mixed_precision,
        "gathered": ranks.tolist(),
        "parameters": digest(model.parameters()),
    }


def by_transformers(folder: str) -> dict:
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    torch.manual_seed(0)
    sizes = {
        "vocab_size": 32,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    model = BertForSequenceClassification(BertConfig(**sizes))
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(32, (32, 8), generator=generator)
    samples = [{"input_ids": row, "labels": row[0] % 2} for row in tokens]
    arguments = TrainingArguments(
        output_dir=folder,
        use_cpu=True,
        per_device_train_batch_size=2,
        max_steps=3,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=samples)
    result = trainer.train()
    return {
        "world": arguments.world_size,
        "index": arguments.process_index,
        "local_index": arguments.local_process_index,
        "is_zero": trainer.is_world_process_zero(),
        "steps": result.global_step,
        "parameters": digest(model.parameters()),
    }


def main():
    accelerate = by_accelerate()
    transformers = by_transformers(os.environ["TAAS_OUTPUT_DIR"])
    report(int(os.environ["RANK"]), accelerate=accelerate, transformers=transformers)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
