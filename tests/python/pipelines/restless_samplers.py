"""Samplers that do more than draw: they communicate, raise, change the dataset, or read what training writes."""

import torch
import torch.distributed as dist
from differential.pipeline import pipeline
from pipelines.everyday import Numbers
from torch.utils.data import DataLoader, Sampler

losses = torch.zeros(47)
CALLS = []


class RaisesInTheMiddle(Sampler):
    def __iter__(self):
        yield from range(18)
        raise ValueError("no more negatives to mine")


@pipeline(epochs=1, resumes=False, raises=True)
def raises_after_some_batches(workers):
    return DataLoader(Numbers(), 4, sampler=RaisesInTheMiddle(), num_workers=workers)


class RaisesAtOnce(Sampler):
    def __iter__(self):
        raise ValueError("call set_epoch first")


@pipeline(epochs=1, resumes=False, raises=True)
def raises_at_once(workers):
    return DataLoader(Numbers(), 4, sampler=RaisesAtOnce(), num_workers=workers)


class Hard(Sampler):
    """Hard-example mining: the next batch is what training did worst on."""

    def __iter__(self):
        for _ in range(10):
            yield torch.topk(losses, 4).indices.tolist()

    def __len__(self):
        return 10


def train(loader, number):
    losses[torch.arange(number, 47, 5)] += float(torch.rand(()))


@pipeline(each_step=train, resumes=False)
def follows_the_losses(workers):
    return DataLoader(Numbers(), batch_sampler=Hard(), num_workers=workers)


class Sized(Numbers):
    size_of_images = 32

    def __getitem__(self, index):
        return torch.zeros(self.size_of_images), index


class ChangesItsDataset(Sampler):
    """YOLO's multi-scale training: the sampler sets the size of the images."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        for first in range(0, 40, 4):
            self.dataset.size_of_images = 32 + first
            yield list(range(first, first + 4))


@pipeline(resumes=False)
def changes_its_dataset(workers):
    dataset = Sized()
    return DataLoader(dataset, batch_sampler=ChangesItsDataset(dataset), num_workers=workers)


shared_stream = iter(())


class FromAModule(Sampler):
    """An iterator of the module, which the program reads from as well."""

    def __iter__(self):
        for _ in range(20):
            yield next(shared_stream)


def read_too(loader, number):
    next(shared_stream)


def begin_stream(loader, epoch):
    global shared_stream
    shared_stream = iter(range(47))


@pipeline(before_epoch=begin_stream, each_step=read_too, resumes=False)
def shares_an_iterator_with_the_program(workers):
    return DataLoader(Numbers(), 4, sampler=FromAModule(), num_workers=workers)


class Agrees(Sampler):
    """All ranks agree on a seed before each chunk; the record of calls stands for the wire."""

    def __iter__(self):
        for chunk in range(5):
            agreed = torch.tensor([chunk + 1])
            CALLS.append(("sampler", chunk))
            dist.all_reduce(agreed)
            yield from range(chunk * 8, chunk * 8 + 8)


def reduce_gradients(loader, number):
    CALLS.append(("training", number))
    dist.all_reduce(torch.ones(1))
    loader.sampler.order_of_calls = str(CALLS)
    torch.manual_seed(hash(tuple(CALLS)) % 1000)  # seen by the harness: another order of calls gives other numbers


@pipeline(each_step=reduce_gradients, resumes=False, epochs=1)
def communicates(workers):
    from pipelines.iterables import join_group

    join_group(0, 1)
    return DataLoader(Numbers(), 4, sampler=Agrees(), num_workers=workers)


class Removes(Sampler):
    """Draws without replacement over epochs: what is drawn is taken from a list of its own."""

    def __init__(self):
        self.left = list(range(47))

    def __iter__(self):
        for _ in range(20):
            yield self.left.pop(int(torch.randint(len(self.left), ())))


@pipeline(resumes=False)
def draws_without_replacement_over_epochs(workers):
    return DataLoader(Numbers(), 4, sampler=Removes(), num_workers=workers)


class Counts(Sampler):
    drawn = 0

    def __iter__(self):
        for index in range(20):
            self.drawn += 1
            yield index


def look(loader, number):
    torch.manual_seed(loader.sampler.drawn)  # how far the sampler is, the program can tell


@pipeline(each_step=look, resumes=False)
def counts_what_it_has_drawn(workers):
    return DataLoader(Numbers(), 4, sampler=Counts(), num_workers=workers)


class Curriculum(Numbers):
    """What the program sets while it trains is to be seen in the next loop."""

    def __init__(self):
        super().__init__()
        self.difficulty, self.buffer, self.weights = 0, [], torch.zeros(5)

    def __getitem__(self, index):
        return index, self.difficulty, len(self.buffer), self.weights.clone()


def make_harder(loader, number):
    if number == 3:
        loader.dataset.difficulty += 1
    if number == 5:
        loader.dataset.buffer.append(number)
    if number == 7:
        loader.dataset.weights[2] += 1


@pipeline(each_step=make_harder, resumes=False)
def changed_by_the_program_behind_its_workers(workers):
    return DataLoader(Curriculum(), 4, num_workers=workers)
