"""A pipeline drawn from a seed: the dataset, the loader's options, and what the program changes around and in loops."""

import pathlib
import random
from typing import Any, Callable, Iterator

from differential.pipeline import Pipeline
from differential.ways import Way
from torch.utils.data import ChainDataset, ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, get_worker_info

from .kept import MOVING, OF_A_PROCESS, SHARED
from .nested import NESTINGS

EPOCHS = 3
SIZE = 18


class Source:
    """Where samples get their number from. `writes`: a look also changes it, in the process of the look."""

    def __init__(self, held: Any, kept: Any, writes: bool) -> None:
        self.held, self.kept, self.writes = held, kept, writes

    def look(self) -> int:
        number = self.held.read()
        if self.writes:
            self.kept.set(number + 1)
        return number


class Rows(Dataset):
    def __init__(self, source: Source) -> None:
        self.source = source

    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, index: int) -> Any:
        return index, self.source.look()


class ManyRows(Rows):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        number = self.source.look()
        return [(index, number) for index in indices]


class PlainRows(Rows):
    """Its loader's collate_fn has the number."""

    def __getitem__(self, index: int) -> Any:
        return index, 0


class Stream(IterableDataset):
    def __init__(self, source: Source) -> None:
        self.source = source

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        for index in range(worker.id if worker else 0, SIZE, worker.num_workers if worker else 1):
            yield index, self.source.look()


class StreamThatLooksOnce(Stream):
    def __iter__(self) -> Iterator[Any]:
        worker, number = get_worker_info(), self.source.look()
        return (
            (index, number) for index in range(worker.id if worker else 0, SIZE, worker.num_workers if worker else 1)
        )


class StreamOfItself(Stream):
    """Its iterator is itself: where it is belongs to the dataset."""

    def __iter__(self) -> Iterator[Any]:
        self.at = 0
        return self

    def __next__(self) -> Any:
        self.at += 1
        if self.at > SIZE:
            raise StopIteration
        return self.at, self.source.look()


MAPS = {"rows": Rows, "rows in numbers": ManyRows, "rows of its collate_fn": PlainRows}
STREAMS = {"a stream": Stream, "a stream that looks once": StreamThatLooksOnce, "a stream of itself": StreamOfItself}
WRAPPED_MAPS: dict[str, Callable[[Any], Any]] = {
    "": lambda dataset: dataset,
    "in a subset": lambda dataset: Subset(dataset, list(range(SIZE))[::-1]),
    "concatenated": lambda dataset: ConcatDataset([Subset(dataset, range(5)), Subset(dataset, range(5, SIZE))]),
}
WRAPPED_STREAMS: dict[str, Callable[[Any], Any]] = {
    "": lambda dataset: dataset,
    "chained": lambda dataset: ChainDataset([dataset]),
}


class Drawn:
    """All of it is known when it was drawn: `make` and the moments of change run anew in each compared process."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.is_stream = draw.random() < 0.3
        self.is_shared = draw.random() < 0.25
        # Which process makes a batch of a map-style dataset is not said: what that process has kept is not compared.
        places = {**OF_A_PROCESS, **MOVING} if self.is_stream else OF_A_PROCESS
        # Batches of a map-style dataset are made ahead of the next loop, and a file may have been written anew by then.
        shared = SHARED if self.is_stream else {name: SHARED[name] for name in SHARED if name != "a file"}
        self.place = draw.choice(sorted(shared if self.is_shared else places))
        self.nesting = [draw.choice(sorted(NESTINGS)) for _ in range(draw.choice([0, 1, 1, 2, 3, 5]))]
        self.dataset = draw.choice(sorted(STREAMS if self.is_stream else MAPS))
        self.wrapped = draw.choice(sorted(WRAPPED_STREAMS if self.is_stream else WRAPPED_MAPS))
        self.workers = draw.choice([0, 0, 1, 2, 3])
        # Where several workers write into what they share, a plain loop gives this or that.
        self.writes = draw.random() < 0.3 and self.is_stream and not (self.is_shared and self.workers > 1)
        self.options = self._drawn_options(draw)
        self.changes = self._drawn_changes(draw)
        self.seed = seed

    def _drawn_options(self, draw: random.Random) -> dict[str, Any]:
        options: dict[str, Any] = {"batch_size": draw.choice([1, 3, 4, 4, 7]), "drop_last": draw.random() < 0.2}
        if not self.is_stream and draw.random() < 0.4:
            options["shuffle"] = True
        if self.workers:
            options["persistent_workers"] = draw.random() < 0.4
            options["prefetch_factor"] = draw.choice([1, 2, 4])
        return options

    def _drawn_changes(self, draw: random.Random) -> dict[tuple[int, int], int]:
        """By epoch and batch; before the epoch: -1. What is shared changes between loops: else plain loops race."""
        moments = [(epoch, -1) for epoch in range(EPOCHS)]
        if not self.is_shared:
            moments += [(epoch, batch) for epoch in range(EPOCHS) for batch in range(4)]
        chosen = draw.sample(moments, k=draw.choice([0, 1, 1, 2, 3]))
        return {moment: draw.randrange(1, 100) for moment in sorted(chosen)}

    def __str__(self) -> str:
        way = ", in ".join([self.place, *self.nesting])
        changed = ", ".join(f"{value} at {epoch}.{batch}" for (epoch, batch), value in self.changes.items())
        return (
            f"seed {self.seed}: {self.dataset} {self.wrapped} of {way}{', written by workers' * self.writes}; "
            f"num_workers={self.workers}, {self.options}; changed: {changed or 'never'}"
        )

    def is_possible(self, way: Way) -> bool:
        """False for what docs/data-guarantees.md says cannot be known."""
        keeps_state = self.writes or self.place in MOVING
        return not (
            way.kills
            and keeps_state
            and self.options.get("persistent_workers")
            or (way.on_machines or way.start_method)
            and self.place == "a module made by the program"
            or way.start_method
            and self.place == "a mapped file"
        )  # copied, where the plain loader can start a worker at all

    def make(self, workers: int) -> DataLoader:
        self.kept = {**OF_A_PROCESS, **MOVING, **SHARED}[self.place]()
        held = self.kept
        for name in self.nesting:
            held = NESTINGS[name](held)
        source = Source(held, self.kept, self.writes)
        dataset = (STREAMS if self.is_stream else MAPS)[self.dataset](source)
        dataset = (WRAPPED_STREAMS if self.is_stream else WRAPPED_MAPS)[self.wrapped](dataset)
        options = {**self.options, "collate_fn": list}
        if self.dataset == "rows of its collate_fn":
            options["collate_fn"] = lambda samples: [(index, source.look()) for index, _ in samples]
        return DataLoader(dataset, num_workers=workers, **options)

    def before_epoch(self, loader: Any, epoch: int) -> None:
        self._epoch = epoch
        self._change(epoch, -1)

    def each_step(self, loader: Any, number: int) -> None:
        self._change(self._epoch, number)

    def _change(self, epoch: int, batch: int) -> None:
        if (epoch, batch) in self.changes:
            self.kept.set(self.changes[epoch, batch])


def drawn_pipeline(seed: int) -> tuple[Pipeline, Callable[[Way], bool]]:
    """The pipeline, and in which ways it can be run."""
    drawn = Drawn(seed)
    pipeline = Pipeline(
        str(drawn),
        drawn.make,
        pathlib.Path(__file__),
        num_workers=(drawn.workers,),
        epochs=EPOCHS,
        before_epoch=drawn.before_epoch,
        each_step=drawn.each_step,
        resumes=False,
        may_be_refused=True,
        after_a_death="a new one would see the dataset as it is now|gives other samples when it is read again",
    )
    return pipeline, drawn.is_possible
