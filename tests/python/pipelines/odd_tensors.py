"""A tensor besides its numbers: flags, gradients, attributes. Each arrives as from a plain worker, or both refuse."""

import torch
from differential.pipeline import of_samples
from pipelines.samples import loader_of


def row(index):
    return torch.arange(4.0) + index


def with_grad(index):
    tensor = row(index).requires_grad_()
    (tensor * tensor).sum().backward()
    return tensor


@of_samples()
def leaves_that_require_grad(workers):
    return loader_of(
        lambda index: [
            row(index).requires_grad_(),
            torch.nn.Parameter(row(index)),
            torch.nn.Parameter(row(index), requires_grad=False),
        ],
        workers,
    )


@of_samples()
def a_leaf_with_its_gradient(workers):
    return loader_of(with_grad, workers)


@of_samples()
def made_in_inference_mode(workers):
    def make(index):
        with torch.inference_mode():
            return row(index) * 2

    return loader_of(make, workers)


@of_samples()
def detached_and_views_of_leaves(workers):
    def make(index):
        leaf = row(index).requires_grad_()
        with torch.no_grad():
            return [leaf.detach(), leaf[1:], leaf.view(2, 2)]

    return loader_of(make, workers)


@of_samples()
def without_bytes(workers):
    return loader_of(
        lambda index: [torch.empty(0, 3), torch.empty(3, 0, 2).transpose(0, 2), torch.tensor(index)], workers
    )


@of_samples()
def of_shared_memory(workers):
    return loader_of(lambda index: row(index).share_memory_(), workers)


@of_samples()
def of_the_meta_device(workers):
    return loader_of(lambda index: torch.empty(2, 3, device="meta"), workers)
