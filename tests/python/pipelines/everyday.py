"""What DataLoader takes, in the combinations of ordinary training scripts."""

import numpy
import torch
from differential.pipeline import pipeline
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset, get_worker_info, random_split


class Numbers(Dataset):
    def __init__(self, size=47):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return torch.full((3, 2), float(index)), index


class Offset(Numbers):
    offset = 0

    def __getitem__(self, index):
        info = get_worker_info()
        return index + self.offset, -1 if info is None else info.id


def generator():
    return torch.Generator().manual_seed(5)


def set_offset(worker):
    get_worker_info().dataset.offset = 1000 * worker


class Made(Dataset):
    """Samples that a function makes of their index."""

    def __init__(self, make, size=13):
        self.make, self.size = make, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.make(index)


def as_they_are(samples):
    return samples


@pipeline()
def in_order(workers):
    return DataLoader(Numbers(), batch_size=8, num_workers=workers)


@pipeline()
def shuffled(workers):
    return DataLoader(Numbers(), batch_size=8, shuffle=True, num_workers=workers)


@pipeline()
def shuffled_by_a_generator(workers):
    return DataLoader(Numbers(), batch_size=8, shuffle=True, num_workers=workers, generator=generator())


@pipeline()
def shuffled_without_the_rest(workers):
    return DataLoader(Numbers(), batch_size=8, shuffle=True, drop_last=True, num_workers=workers)


@pipeline(num_workers=(2,), epochs=3)
def persistent_workers(workers):
    return DataLoader(Numbers(), batch_size=8, shuffle=True, num_workers=workers, persistent_workers=True)


@pipeline(num_workers=(1, 3))
def prefetched_far(workers):
    return DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=workers, prefetch_factor=5)


@pipeline()
def one_by_one(workers):
    return DataLoader(Numbers(), batch_size=None, shuffle=True, num_workers=workers)


@pipeline()
def pinned_without_a_gpu(workers):
    return DataLoader(Numbers(), batch_size=8, pin_memory=True, num_workers=workers)


@pipeline(num_workers=(2,))
def with_a_timeout(workers):
    return DataLoader(Numbers(), batch_size=8, timeout=50, num_workers=workers)


@pipeline(num_workers=(2, 3))
def worker_init_fn(workers):
    return DataLoader(Offset(), batch_size=4, num_workers=workers, worker_init_fn=set_offset)


@pipeline()
def knows_its_worker(workers):
    return DataLoader(Offset(), batch_size=4, num_workers=workers)


@pipeline()
def tensors(workers):
    return DataLoader(
        TensorDataset(torch.arange(60.0).view(30, 2), torch.arange(30)), 4, shuffle=True, num_workers=workers
    )


@pipeline()
def subset(workers):
    return DataLoader(Subset(Numbers(), range(30, 5, -1)), 4, num_workers=workers)


@pipeline()
def concatenated(workers):
    return DataLoader(
        ConcatDataset([Numbers(10), Subset(Numbers(), range(20, 30))]), 4, shuffle=True, num_workers=workers
    )


@pipeline()
def split_at_random(workers):
    train, _ = random_split(Numbers(), [0.8, 0.2])
    return DataLoader(train, 4, shuffle=True, num_workers=workers)


@pipeline(resumes=False)
def fewer_samples_than_a_batch(workers):
    return DataLoader(Numbers(3), 8, num_workers=workers)


@pipeline(resumes=False)
def no_samples(workers):
    return DataLoader(Numbers(0), 8, num_workers=workers)


class InOneGo(Numbers):
    def __getitems__(self, indices):
        return [self[index] for index in reversed(indices)]


@pipeline()
def all_samples_of_a_batch_in_one_call(workers):
    return DataLoader(InOneGo(), 8, shuffle=True, num_workers=workers)


@pipeline()
def a_list_is_a_dataset(workers):
    return DataLoader(
        [{"number": number, "name": f"sample {number}"} for number in range(30)], 4, shuffle=True, num_workers=workers
    )


@pipeline(random=True)
def a_generator_in_the_closure_of_a_local_class(workers):
    generator = numpy.random.default_rng(3)

    class Noisy(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, index):
            return index + generator.random()

    return DataLoader(Noisy(), 8, num_workers=workers)
