"""Samples that are too much: for a frame, for a worker, in number."""

import os
import signal

import torch
from differential.pipeline import pipeline
from pipelines.everyday import Made, as_they_are
from torch.utils.data import DataLoader


class Deadly(Made):
    """A decoder that crashes on one file."""

    def __init__(self, number):
        super().__init__(lambda index: index, 16)
        self.number, self.training = number, os.getpid()

    def __getitem__(self, index):
        if index == self.number and os.getpid() != self.training:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


@pipeline(
    num_workers=(2,),
    epochs=1,
    resumes=False,
    raises=True,
    refused=r"batch 0 of epoch 0, indices \[0, 1, 2, 3\]: 3 data workers ended, or were lost, while they worked on it",
)
def a_sample_that_kills_its_worker(workers):
    return DataLoader(Deadly(2), 4, num_workers=workers)


@pipeline(num_workers=(0,), epochs=1, seconds=30.0, resumes=False)
def long_documents_of_chinese(workers):
    return DataLoader(Made(lambda index: "\u4e2d" * 6000, 600), 600, num_workers=workers, collate_fn=as_they_are)


def too_long(index):
    raise ValueError("x" * (70 << 20))


@pipeline(
    num_workers=(0,),
    epochs=1,
    raises=True,
    resumes=False,
    seconds=30.0,
    refused="the dataset raised a ValueError of 73 MB, of which a data worker can send 65 MB",
)
def an_exception_of_70_megabytes(workers):
    return DataLoader(Made(too_long, 8), 4, num_workers=workers)


@pipeline(num_workers=(0,))
def many_small_parts(workers):
    return DataLoader(
        Made(lambda index: {f"key {number}": [number, str(index)] for number in range(300)}, 24),
        8,
        num_workers=workers,
        collate_fn=as_they_are,
    )


@pipeline(num_workers=(2,))
def batches_of_another_shape_each(workers):
    return DataLoader(
        Made(lambda index: [torch.zeros(index, 3), "x" * index], 40), 2, num_workers=workers, collate_fn=as_they_are
    )
