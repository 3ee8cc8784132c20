"""Collate functions as tutorials and libraries write them."""

import random

import numpy
import torch
from differential.pipeline import pipeline
from pipelines.everyday import Made
from torch.nn.utils.rnn import pack_sequence, pad_sequence
from torch.utils.data import DataLoader, default_collate


def text(index):
    return torch.arange(index % 5 + 1), index % 2


def texts(collate, workers, **options):
    return DataLoader(Made(text, 29), 4, num_workers=workers, collate_fn=collate, **options)


def padded(samples):
    sequences, labels = zip(*samples)
    lengths = torch.tensor([len(each) for each in sequences])
    return pad_sequence(sequences, batch_first=True, padding_value=-1), lengths, torch.tensor(labels)


@pipeline(epochs=1)
def padded_sequences(workers):
    return texts(padded, workers, shuffle=True)


def packed(samples):
    return pack_sequence([sequence for sequence, _ in samples], enforce_sorted=False)


@pipeline(epochs=1)
def packed_sequences(workers):
    return texts(packed, workers, shuffle=True)


class Collator:
    """HF's DataCollatorWithPadding: an object that is called, with settings of its own."""

    def __init__(self, multiple):
        self.multiple = multiple

    def __call__(self, samples):
        longest = -(-max(len(sequence) for sequence, _ in samples) // self.multiple) * self.multiple
        ids = torch.zeros(len(samples), longest, dtype=torch.long)
        for row, (sequence, _) in zip(ids, samples):
            row[: len(sequence)] = sequence
        return {"input_ids": ids, "attention_mask": ids.ne(0).long()}


@pipeline(epochs=1)
def an_object_that_collates(workers):
    return texts(Collator(8), workers)


def only_some(samples):
    return default_collate([label for sequence, label in samples if len(sequence) > 1]) if len(samples) > 1 else None


@pipeline(epochs=1)
def broken_samples_left_out(workers):
    return texts(only_some, workers)


@pipeline(epochs=1)
def detection(workers):
    """Images of their own sizes stay a tuple, targets are dictionaries."""
    made = Made(lambda index: (torch.ones(3, index + 1, 4), {"boxes": torch.ones(index % 3, 4), "id": index}))
    return DataLoader(made, 4, num_workers=workers, collate_fn=lambda samples: tuple(zip(*samples)))


def mixed_up(samples):
    batch, other = default_collate([float(label) for _, label in samples]), random.random()
    return batch * other + torch.rand(len(samples)), torch.randperm(len(samples))


@pipeline(random=True, epochs=1)
def mixup(workers):
    return texts(mixed_up, workers, shuffle=True)


def raising(samples):
    if any(label == 1 and len(sequence) == 4 for sequence, label in samples):
        raise RuntimeError("stack expects each tensor to be equal size")
    return len(samples)


@pipeline(epochs=1, raises=True)
def a_collate_that_raises(workers):
    return texts(raising, workers)


@pipeline(epochs=1)
def collated_by_default(workers):
    samples = Made(lambda index: {"a": [index, index / 3], "b": (numpy.float32(index), torch.ones(2)), "c": "x"})
    return DataLoader(samples, 4, num_workers=workers)
