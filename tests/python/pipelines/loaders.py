"""Subclasses of DataLoader, as the libraries have them."""

import queue
import threading

import torch
from differential.pipeline import pipeline
from own_datasets import Numbers, Repeated
from torch.utils.data import DataLoader


class MultiEpochs(DataLoader):
    """As timm's: one iterator for all epochs, over a sampler without an end."""

    iterator = None

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._DataLoader__initialized = False
        self.batch_sampler = Repeated(self.batch_sampler)
        self._DataLoader__initialized = True

    def __iter__(self):
        self.iterator = super().__iter__() if self.iterator is None else self.iterator
        yield from (next(self.iterator) for _ in range(len(self.batch_sampler.sampler)))


@pipeline(resumes=False)
def one_iterator_for_all_epochs(workers):
    return MultiEpochs(Numbers(47), batch_size=8, shuffle=True, num_workers=workers)


@pipeline(resumes=False)
def timms_multi_epochs(workers):
    """It has its iterator before it can be registered."""
    loader = one_iterator_for_all_epochs(workers)
    loader.iterator = DataLoader.__iter__(loader)
    return loader


class Limited(DataLoader):
    def __iter__(self):
        for number, batch in enumerate(super().__iter__()):
            if number == 3:
                return
            yield batch


@pipeline(resumes=False)
def only_some_batches_of_an_epoch(workers):
    return Limited(Numbers(47), batch_size=8, num_workers=workers)


class ReadByAThread(DataLoader):
    """MONAI's ThreadDataLoader: two batches ahead, while the program draws random numbers."""

    def __iter__(self):
        batches, ready = super().__iter__(), queue.Queue(2)
        threading.Thread(target=lambda: [ready.put(batch) for batch in [*batches, None]], daemon=True).start()
        yield from iter(ready.get, None)


@pipeline(resumes=False)
def batches_read_by_a_thread(workers):
    return ReadByAThread(Numbers(47), batch_size=4, num_workers=workers)


class Named(DataLoader):
    """A constructor, a length and a collate_fn of its own; batches are converted in the rank, as by Keras."""

    def __init__(self, dataset, name, workers):
        super().__init__(dataset, batch_size=4, shuffle=True, num_workers=workers, collate_fn=self.collate)
        self.name = name

    def __len__(self):
        return 3

    def collate(self, samples):
        return self.name, torch.stack([image for image, _ in samples])

    def __iter__(self):
        for name, images in super().__iter__():
            yield {name: images * 2}


@pipeline()
def collated_by_the_loader_itself(workers):
    return Named(Numbers(47), "a name", workers)


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
    return Callbacks(OfAnEpoch(47), batch_size=4, num_workers=workers)
