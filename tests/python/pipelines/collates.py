"""Collate functions as tutorials and libraries write them."""

import functools
import random

import numpy
import torch
from differential.pipeline import of_samples
from pipelines.everyday import Made
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_sequence
from torch.utils.data import DataLoader, default_collate


def text(index):
    return torch.arange(index % 5 + 1), index % 2


def padded(samples):
    sequences, labels = zip(*samples)
    lengths = torch.tensor([len(each) for each in sequences])
    return pad_sequence(sequences, batch_first=True, padding_value=-1), lengths, torch.tensor(labels)


@of_samples()
def padded_sequences(workers):
    return DataLoader(Made(text, 30), 4, shuffle=True, num_workers=workers, collate_fn=padded)


def packed(samples) -> PackedSequence:
    return pack_sequence([sequence for sequence, _ in samples], enforce_sorted=False)


@of_samples()
def packed_sequences(workers):
    return DataLoader(Made(text, 30), 4, shuffle=True, num_workers=workers, collate_fn=packed)


class Collator:
    """HF's DataCollatorWithPadding: an object that is called, with a tokenizer of its own."""

    def __init__(self, multiple):
        self.multiple = multiple

    def __call__(self, samples):
        longest = -(-max(len(sequence) for sequence, _ in samples) // self.multiple) * self.multiple
        ids = torch.zeros(len(samples), longest, dtype=torch.long)
        for row, (sequence, _) in zip(ids, samples):
            row[: len(sequence)] = sequence
        return {"input_ids": ids, "attention_mask": ids.ne(0).long()}


@of_samples()
def an_object_that_collates(workers):
    return DataLoader(Made(text, 30), 4, num_workers=workers, collate_fn=Collator(8))


@of_samples()
def a_method_that_collates(workers):
    return DataLoader(Made(text, 30), 4, num_workers=workers, collate_fn=Collator(4).__call__)


def scaled(samples, factor):
    return default_collate([(torch.tensor([float(len(sequence))]) * factor, label) for sequence, label in samples])


@of_samples()
def a_partial(workers):
    return DataLoader(Made(text, 30), 4, num_workers=workers, collate_fn=functools.partial(scaled, factor=2))


@of_samples()
def a_closure(workers):
    factor = torch.tensor(3.0)
    return DataLoader(
        Made(text, 30), 4, num_workers=workers, collate_fn=lambda samples: [len(each[0]) * factor for each in samples]
    )


def only_some(samples):
    return default_collate([label for sequence, label in samples if len(sequence) > 1]) if len(samples) > 1 else None


@of_samples()
def broken_samples_left_out(workers):
    return DataLoader(Made(text, 29), 4, num_workers=workers, collate_fn=only_some)


def boxes(samples):
    """Detection: images of their own sizes stay a tuple, targets are dictionaries."""
    return tuple(zip(*samples))


@of_samples()
def detection(workers):
    return DataLoader(
        Made(lambda index: (torch.ones(3, index + 1, 4), {"boxes": torch.ones(index % 3, 4), "id": index})),
        4,
        num_workers=workers,
        collate_fn=boxes,
    )


def mixed_up(samples):
    batch, other = default_collate([float(label) for _, label in samples]), random.random()
    return batch * other + torch.rand(len(samples)), torch.randperm(len(samples))


@of_samples(random=True)
def mixup(workers):
    return DataLoader(Made(text, 30), 4, shuffle=True, num_workers=workers, collate_fn=mixed_up)


def raising(samples):
    if any(label == 1 and len(sequence) == 4 for sequence, label in samples):
        raise RuntimeError("stack expects each tensor to be equal size")
    return len(samples)


@of_samples(epochs=1, resumes=False, raises=True)
def a_collate_that_raises(workers):
    return DataLoader(Made(text, 30), 4, num_workers=workers, collate_fn=raising)


def views(samples):
    whole = torch.stack([torch.full((4,), float(label)) for _, label in samples])
    return {"whole": whole, "left": whole[:, :2], "right": whole[:, 2:]}


@of_samples()
def views_of_one_tensor(workers):
    return DataLoader(Made(text, 30), 4, num_workers=workers, collate_fn=views)


@of_samples()
def collated_by_default(workers):
    samples = Made(lambda index: {"a": [index, index / 3], "b": (numpy.float32(index), torch.ones(2)), "c": "x"})
    return DataLoader(samples, 4, num_workers=workers)
