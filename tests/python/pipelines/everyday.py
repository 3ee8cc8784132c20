"""What DataLoader takes, in the combinations of ordinary training scripts."""

import numpy
from differential.pipeline import pipeline
from own_datasets import Numbers, generator
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, random_split


class Made(Dataset):
    """Samples that a function makes of their index."""

    def __init__(self, make, size=13):
        self.make, self.size = make, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.make(index)


@pipeline()
def shuffled_by_a_generator(workers):
    return DataLoader(Numbers(47), batch_size=8, shuffle=True, num_workers=workers, generator=generator())


@pipeline(num_workers=(2,), epochs=3)
def persistent_workers(workers):
    return DataLoader(Numbers(47), batch_size=8, shuffle=True, num_workers=workers, persistent_workers=True)


@pipeline()
def pinned_without_a_gpu(workers):
    return DataLoader(Numbers(47), batch_size=8, pin_memory=True, num_workers=workers)


@pipeline()
def parts_of_datasets(workers):
    drawn, _ = random_split(Numbers(47), [0.3, 0.7])
    return DataLoader(ConcatDataset([drawn, Subset(Numbers(), range(30, 5, -1))]), 4, shuffle=True, num_workers=workers)


class InOneGo(Numbers):
    def __getitems__(self, indices):
        return [self[index] for index in reversed(indices)]


@pipeline()
def all_samples_of_a_batch_in_one_call(workers):
    return DataLoader(InOneGo(47), 8, shuffle=True, num_workers=workers)


@pipeline()
def a_list_is_a_dataset(workers):
    rows = [{"number": number, "name": f"sample {number}"} for number in range(30)]
    return DataLoader(rows, 4, shuffle=True, num_workers=workers)


@pipeline(random=True)
def a_generator_in_a_closure(workers):
    drawn = numpy.random.default_rng(3)
    return DataLoader(Made(lambda index: index + drawn.random(), 40), 8, num_workers=workers)


class HasALoader(Dataset):
    """A dataset that reads through a loader of its own."""

    def __init__(self):
        self.inner = DataLoader(Numbers(), batch_size=2)

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return next(iter(self.inner))[0] + index


@pipeline(random=True)
def a_loader_in_a_dataset(workers):
    return DataLoader(HasALoader(), 4, num_workers=workers, collate_fn=list)


@pipeline(num_workers=(0,), epochs=1)
def long_documents_of_chinese(workers):
    return DataLoader(Made(lambda index: "\u4e2d" * 6000, 600), 600, num_workers=workers, collate_fn=list)


def too_long(index):
    raise ValueError("x" * (70 << 20))


@pipeline(num_workers=(0,), refused="the dataset raised a ValueError of 73 MB, of which a data worker can send 65 MB")
def an_exception_of_70_megabytes(workers):
    return DataLoader(Made(too_long, 8), 4, num_workers=workers)


class Unpicklable(Exception):
    def __init__(self, path, place):
        super().__init__(f"{path} at {place}")


class Raises(Numbers):
    def __getitem__(self, index):
        if index == 17:
            raise Unpicklable("/data/17", 3)
        return index


@pipeline(epochs=1, num_workers=(2,), raises=True)
def an_exception_that_cannot_be_pickled(workers):
    return DataLoader(Raises(30), 4, num_workers=workers)
