"""Datasets that read from files and data bases, opened as it is commonly done."""

import pathlib
import sqlite3
import tempfile
import zipfile

import numpy
import torch
from differential.pipeline import pipeline
from torch.utils.data import DataLoader, Dataset, get_worker_info

ROWS = 30


def place(name):
    return pathlib.Path(tempfile.gettempdir()) / name


class Opened(Dataset):
    """Rows of what each process opens for itself at first use."""

    opened = None

    def __init__(self, open_it, read):
        self.open_it, self.read = open_it, read

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        self.opened = self.open_it() if self.opened is None else self.opened
        return self.read(self.opened, index)


def database():
    path = place("rows.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("create table rows (id integer primary key, name text, weight real)")
        rows = [(row, f"row {row}", row / 7) for row in range(ROWS)]
        connection.executemany("insert into rows values (?, ?, ?)", rows)
    connection.close()
    return Opened(
        lambda: sqlite3.connect(f"file:{path}?mode=ro", uri=True),
        lambda opened, index: opened.execute("select * from rows where id = ?", (index,)).fetchone(),
    )


@pipeline(epochs=1)
def sqlite_opened_at_first_use(workers):
    return DataLoader(database(), 4, num_workers=workers)


@pipeline(refused=r"dataset\.opened .*cannot be pickled.*Open files and connections on first use")
def sqlite_opened_at_once(workers):
    dataset = database()
    dataset.opened = dataset.open_it()
    return DataLoader(dataset, 4, num_workers=workers)


@pipeline(epochs=1)
def members_of_a_zip(workers):
    path = place("rows.zip")
    with zipfile.ZipFile(path, "w") as archive:
        for row in range(ROWS):
            archive.writestr(f"{row}.bin", bytes([row]) * (row + 1))
    made = Opened(lambda: zipfile.ZipFile(path), lambda archive, index: archive.read(f"{index}.bin"))
    return DataLoader(made, 4, num_workers=workers)


@pipeline(epochs=1)
def tokens_in_a_memmap(workers):
    """nanoGPT, Megatron: tokens in one array on the disk."""
    numpy.arange(ROWS * 8, dtype=numpy.uint16).tofile(place("tokens"))
    made = Opened(None, lambda tokens, index: torch.from_numpy(tokens[index].astype(numpy.int64)))
    made.opened = numpy.memmap(place("tokens"), dtype=numpy.uint16, mode="r").reshape(ROWS, 8)
    return DataLoader(made, 4, shuffle=True, num_workers=workers)


@pipeline(epochs=1, num_workers=(2,))
def opened_by_worker_init_fn(workers):
    """As the tutorial for h5py says."""
    path = place("rows.npy")
    numpy.save(path, numpy.arange(ROWS * 3).reshape(ROWS, 3))

    def open_it(worker):
        get_worker_info().dataset.opened = numpy.load(path, mmap_mode="r")

    made = Opened(None, lambda opened, index: numpy.array(opened[index]))
    return DataLoader(made, 4, num_workers=workers, worker_init_fn=open_it)
