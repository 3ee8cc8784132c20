"""transformers' Trainer over three epochs; with `registered` its batches come from data workers."""

import os
import sys
import warnings

import taas
import torch
from reporting import digest, report
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

warnings.filterwarnings("ignore")
TOKENS = torch.randint(32, (32, 8), generator=torch.Generator().manual_seed(1))


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return len(TOKENS)

    def __getitem__(self, index):
        return {"input_ids": TOKENS[index], "labels": TOKENS[index, 0] % 2}


class Mine(Trainer):
    def get_train_dataloader(self):
        prepared = super().get_train_dataloader()
        if "registered" in sys.argv:
            taas.register(getattr(prepared, "base_dataloader", prepared))
        return prepared


def main():
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 32,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    model = BertForSequenceClassification(BertConfig(**sizes, attn_implementation="eager"))
    arguments = TrainingArguments(
        output_dir=os.environ["TAAS_OUTPUT_DIR"],
        use_cpu=True,
        per_device_train_batch_size=2,
        num_train_epochs=3,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_steps=1,
        dataloader_num_workers=2,
    )
    trainer = Mine(model=model, args=arguments, train_dataset=Rows())
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    report(
        int(os.environ["RANK"]), losses=losses, steps=trainer.state.global_step, parameters=digest(model.parameters())
    )
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
