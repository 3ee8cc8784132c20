"""Subclasses of DataLoader, as the libraries have them, and loaders in unusual hands."""

import pathlib
import queue
import threading

import torch
from own_datasets import Repeated
from differential.pipeline import pipeline
from pipelines.everyday import Numbers
from torch.utils.data import DataLoader, Dataset


class MultiEpochs(DataLoader):
    """As timm's was: one iterator for all epochs, made at once, over a sampler without an end."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._DataLoader__initialized = False
        self.batch_sampler = Repeated(self.batch_sampler)
        self._DataLoader__initialized = True
        self.iterator = super().__iter__()

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.iterator)


@pipeline(resumes=False)
def timms_multi_epochs(workers):
    return MultiEpochs(Numbers(), batch_size=8, num_workers=workers)


class Converted(DataLoader):
    """Keras-like: batches are dictionaries, made in the rank."""

    def __iter__(self):
        for images, labels in super().__iter__():
            yield {"images": images * 2, "labels": labels}


@pipeline()
def batches_converted_by_iter(workers):
    return Converted(Numbers(), batch_size=8, shuffle=True, num_workers=workers)


class Limited(DataLoader):
    limit = 3

    def __iter__(self):
        for number, batch in enumerate(super().__iter__()):
            if number == self.limit:
                return
            yield batch


@pipeline(resumes=False)
def only_some_batches_of_an_epoch(workers):
    return Limited(Numbers(), batch_size=8, num_workers=workers)


class Prefetching(DataLoader):
    """NVIDIA's DataPrefetcher: one batch ahead."""

    def __iter__(self):
        iterator = super().__iter__()
        ahead = next(iterator, None)
        while ahead is not None:
            batch, ahead = ahead, next(iterator, None)
            yield batch


@pipeline(resumes=False)  # its state is that of the batch ahead
def one_batch_ahead_by_iter(workers):
    return Prefetching(Numbers(), batch_size=8, shuffle=True, num_workers=workers)


class ReadByAThread(DataLoader):
    """MONAI's ThreadDataLoader: two batches ahead, while the program draws random numbers."""

    def __iter__(self):
        batches, ready = super().__iter__(), queue.Queue(2)
        threading.Thread(target=lambda: [ready.put(batch) for batch in [*batches, None]], daemon=True).start()
        yield from iter(ready.get, None)


@pipeline(resumes=False)
def batches_read_by_a_thread(workers):
    return ReadByAThread(Numbers(), batch_size=4, num_workers=workers)


class Named(DataLoader):
    """A subclass with a constructor of its own, nothing else."""

    def __init__(self, dataset, name, workers):
        super().__init__(dataset, batch_size=4, shuffle=True, num_workers=workers, collate_fn=self.collate)
        self.name = name

    def collate(self, samples):
        return self.name, torch.stack([image for image, _ in samples])


@pipeline()
def collated_by_the_loader_itself(workers):
    return Named(Numbers(), "a name", workers)


class WithALength(DataLoader):
    def __len__(self):
        return 3


@pipeline()
def a_length_of_its_own(workers):
    return WithALength(Numbers(), batch_size=4, num_workers=workers)


class Callbacks(DataLoader):
    """Counts its epochs in iter(), and sets them."""

    epoch = -1

    def __iter__(self):
        self.epoch += 1
        self.dataset.epoch = self.epoch
        return super().__iter__()


class OfAnEpoch(Numbers):
    epoch = 0

    def __getitem__(self, index):
        return index, self.epoch


@pipeline(resumes=False)
def sets_the_epoch_in_iter(workers):
    return Callbacks(OfAnEpoch(), batch_size=4, num_workers=workers)


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


class Retry(Dataset):
    """Broken samples are replaced by their neighbours."""

    def __len__(self):
        return 30

    def __getitem__(self, index):
        try:
            if index % 7 == 3:
                raise OSError(f"sample {index} is truncated")
            return torch.tensor(index)
        except OSError:
            return self[(index + 1) % len(self)]


@pipeline()
def broken_samples_are_replaced(workers):
    return DataLoader(Retry(), 4, num_workers=workers)


class Raises(Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, index):
        if index == 17:
            raise KeyError("no label for sample 17")
        return index


@pipeline(epochs=1, resumes=False, raises=True)
def a_sample_that_raises(workers):
    return DataLoader(Raises(), 4, num_workers=workers)


class Unpicklable(Exception):
    def __init__(self, path, place):
        super().__init__(f"{path} at {place}")


class RaisesUnpicklable(Raises):
    def __getitem__(self, index):
        if index == 17:
            raise Unpicklable(pathlib.Path("/data/17"), 3)
        return index


@pipeline(epochs=1, num_workers=(2,), resumes=False, says="/data/17 at 3", raises=True)
def an_exception_that_cannot_be_pickled(workers):
    return DataLoader(RaisesUnpicklable(), 4, num_workers=workers)
