"""Answers questions about a text: data parallel training that survives a restart.

taas-run --gpus 8 train.py --epochs 10
"""

import argparse
import contextlib
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from checkpoint import CheckpointError, Position, load, save
from dataset import add_options, open_datasets
from distributed import ResumableSampler, connect, share_of_examples
from model import QuestionAnswerer, loss_of
from natural_questions import InputError
from scores import MEASURES, BestWindows
from sizes import SIZES, WARM_UP
from windows import Windows

Batch = dict[str, torch.Tensor]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    parser.add_argument("--size", choices=sorted(SIZES), default="tiny", help="of the model and its windows")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--workers", type=int, default=0, help="processes of each rank that make batches")
    parser.add_argument("--save-every", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--log-every", type=int, default=20, help="steps between lines")
    parser.add_argument("--resume", metavar="FILE", help="the checkpoint of an earlier run to go on from")
    return parser.parse_args()


def register(loader: "DataLoader[Any]") -> None:
    """Lets taas-run's data workers make the batches, where it is installed."""
    with contextlib.suppress(ImportError):
        import taas

        taas.register(loader)


class Trainer:
    def __init__(self, options: argparse.Namespace, data: Windows) -> None:
        self.options, self.size, self.device = options, SIZES[options.size], connect()
        torch.manual_seed(0)
        self.plain = QuestionAnswerer(self.size).to(self.device)
        self.optimizer = torch.optim.AdamW(self.plain.parameters(), lr=self.size.learning_rate)
        self.position = load(self.plain, self.optimizer, options.resume)
        self.model = DistributedDataParallel(self.plain)
        self.sampler = ResumableSampler(data)
        self.loader: "DataLoader[Batch]" = DataLoader(
            data, options.batch_size, sampler=self.sampler, num_workers=options.workers
        )
        register(self.loader)

    def train_epoch(self) -> float:
        """From self.position to the end of its epoch. Returns the mean loss over all ranks."""
        self.sampler.set_epoch(self.position.epoch)
        self.sampler.done = self.position.samples
        samples_of_step = self.options.batch_size * dist.get_world_size()
        total = torch.zeros(2, device=self.device)
        for step, batch in enumerate(self.loader, 1 + self.position.samples // samples_of_step):
            loss = self.train_step(batch, step)
            total += torch.stack([loss, torch.ones_like(loss)])
            self.position.samples += samples_of_step
            if step % self.options.log_every == 0:
                say(f"epoch {self.position.epoch}, step {step}: loss {loss.item():.3f}")
            if step % self.options.save_every == 0:
                save(self.plain, self.optimizer, self.position)
        dist.all_reduce(total)
        return (total[0] / total[1].clamp(min=1)).item()

    def train_step(self, batch: Batch, step: int) -> torch.Tensor:
        # What is random in a step depends on the step alone, so that a run that goes on does what it would have done.
        torch.manual_seed((self.position.epoch << 40) + (step << 16) + dist.get_rank())
        warm = 1.0 if self.position.epoch else min(1.0, step / WARM_UP)
        self.optimizer.param_groups[0]["lr"] = self.size.learning_rate * warm
        batch = {name: values.to(self.device) for name, values in batch.items()}
        loss = loss_of(self.model(batch["tokens"], batch["kinds"], batch["candidates"]), batch)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.plain.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def evaluate(self, data: Windows) -> str:
        self.plain.eval()
        best = BestWindows()
        for batch in DataLoader(share_of_examples(data), self.options.batch_size):
            outputs = self.plain(*(batch[name].to(self.device) for name in ("tokens", "kinds", "candidates")))
            best.add(
                {name: values.float().cpu().numpy() for name, values in outputs.items()},
                {name: batch[name].numpy() for name in ("example", "origin")},
            )
        self.plain.train()
        sums = torch.tensor(best.sums(data.examples), dtype=torch.float32, device=self.device)
        dist.all_reduce(sums)
        examples, *totals = sums.tolist()
        return ", ".join(f"{name} {total / examples:.3f}" for name, total in zip(MEASURES, totals))

    def run(self, validation: Windows) -> None:
        while self.position.epoch < self.options.epochs:
            loss = self.train_epoch()
            self.position = Position(self.position.epoch + 1)
            save(self.plain, self.optimizer, self.position)
            measured = self.evaluate(validation)
            ranks = "1 rank" if dist.get_world_size() == 1 else f"{dist.get_world_size()} ranks"
            say(f"epoch {self.position.epoch - 1}: loss {loss:.4f} on {ranks}, {measured}")


def say(line: str) -> None:
    if dist.get_rank() == 0:
        print(line, flush=True)


def main() -> None:
    options = read_options()
    try:
        training, validation = open_datasets(options, SIZES[options.size].windows)
        Trainer(options, training).run(validation)
    except (InputError, CheckpointError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        sys.exit(2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
