"""Datasets that read from files and data bases, for the pipelines of storage.py."""

import csv
import functools
import json
import mmap
import pathlib
import pickle
import sqlite3
import tempfile
import threading
import zipfile

import numpy
import torch
from torch.utils.data import Dataset

ROWS = 30


def folder():
    found = pathlib.Path(tempfile.gettempdir()) / "stored"
    found.mkdir()
    return found


class Stored(Dataset):
    def __init__(self):
        self.path = folder() / "data"
        self.write()

    def __len__(self):
        return ROWS


class Database(Stored):
    """A connection of each process' own, opened at first use."""

    connection = None

    def write(self):
        with sqlite3.connect(self.path) as connection:
            connection.execute("create table rows (id integer primary key, name text, weight real)")
            connection.executemany(
                "insert into rows values (?, ?, ?)", [(row, f"row {row}", row / 7) for row in range(ROWS)]
            )
        connection.close()

    def __getitem__(self, index):
        self.connection = self.connection or sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        return self.connection.execute("select * from rows where id = ?", (int(index),)).fetchone()


class OpenDatabase(Database):
    def __init__(self):
        super().__init__()
        self.connection = sqlite3.connect(self.path)


class OpenFile(Database):
    """Its samples lie behind one another in a file with one place."""

    def write(self):
        self.path.write_bytes(bytes(range(ROWS)))

    def __init__(self):
        super().__init__()
        self.file = open(self.path, "rb", buffering=0)

    def __getitem__(self, index):
        self.file.seek(index)
        return self.file.read(1)[0]


class Mapped(Stored):
    """A file that is mapped at once, and an index of offsets."""

    def write(self):
        lines = [json.dumps({"id": row, "text": "x" * row}).encode() + b"\n" for row in range(ROWS)]
        self.path.write_bytes(b"".join(lines))
        self.offsets = numpy.cumsum([0] + [len(line) for line in lines])
        self.mapped = None

    def __getitem__(self, index):
        if self.mapped is None:
            with open(self.path, "rb") as file:
                self.mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return json.loads(self.mapped[self.offsets[index] : self.offsets[index + 1]])["text"]


class Memmap(Stored):
    """nanoGPT, Megatron: tokens in one array on the disk."""

    def write(self):
        numpy.arange(ROWS * 8, dtype=numpy.uint16).tofile(self.path)
        self.tokens = numpy.memmap(self.path, dtype=numpy.uint16, mode="r").reshape(ROWS, 8)

    def __getitem__(self, index):
        return torch.from_numpy(self.tokens[index].astype(numpy.int64)), int(self.tokens[index].sum())


class Archive(Stored):
    """A zip that is opened by each process, as its id tells."""

    def write(self):
        with zipfile.ZipFile(self.path, "w") as archive:
            for row in range(ROWS):
                archive.writestr(f"{row}.bin", bytes([row]) * (row + 1))
        self.archives = {}

    def __getitem__(self, index):
        thread = threading.get_ident()
        if thread not in self.archives:
            self.archives[thread] = zipfile.ZipFile(self.path)
        return self.archives[thread].read(f"{index}.bin")


class Table(Stored):
    def write(self):
        with open(self.path, "w", newline="") as file:
            csv.writer(file).writerows([row, f"name {row}", row * 0.1] for row in range(ROWS))

    @functools.cached_property
    def rows(self):
        with open(self.path, newline="") as file:
            return list(csv.reader(file))

    def __getitem__(self, index):
        number, name, weight = self.rows[index]
        return int(number), name, float(weight)


@functools.lru_cache(maxsize=4)
def shard(path):
    return pickle.loads(path.read_bytes())


class Shards(Stored):
    def write(self):
        for first in range(0, ROWS, 10):
            rows = {row: torch.full((3,), row) for row in range(first, first + 10)}
            (self.path.parent / f"{first}.pickle").write_bytes(pickle.dumps(rows))

    def __getitem__(self, index):
        return shard(self.path.parent / f"{index // 10 * 10}.pickle")[index]


class ByWorker(Stored):
    """Opens its file in worker_init_fn, as the tutorial for h5py says."""

    file = None

    def write(self):
        numpy.save(self.path.with_suffix(".npy"), numpy.arange(ROWS * 3).reshape(ROWS, 3))

    def open(self):
        self.file = numpy.load(self.path.with_suffix(".npy"), mmap_mode="r")

    def __getitem__(self, index):
        return numpy.array(self.file[index])


class Guarded(Stored):
    """A lock in the dataset: workers have one of their own."""

    def write(self):
        self.path.write_text("text")
        self.lock = threading.Lock()

    def __getitem__(self, index):
        with self.lock:
            return self.path.read_text() + str(index)


class Held(Guarded):
    """Somebody else holds the lock while the loop runs: samples are made without it."""

    def write(self):
        super().write()
        self.lock.acquire()

    def __getitem__(self, index):
        return index


def make_folder_of_images(kind):
    root = folder()
    for name in ("cats", "dogs"):
        (root / name).mkdir()
        for number in range(8):
            (root / name / f"{number}.{kind}").write_bytes(f"{name} {number}".encode())
    return root


class Folder(Dataset):
    """torchvision's ImageFolder without images."""

    def __init__(self, root, loader):
        self.classes = sorted(path.name for path in root.iterdir())
        self.samples = [(path, self.classes.index(path.parent.name)) for path in sorted(root.glob("*/*"))]
        self.loader = loader

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, target = self.samples[index]
        return self.loader(path), target
