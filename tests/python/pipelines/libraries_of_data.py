"""Libraries that bring data: webdataset, torchdata, HF datasets, pyarrow, h5py, lmdb, zarr, pandas."""

import io
import pathlib
import tarfile
import tempfile

import numpy
import torch
from differential.pipeline import pipeline
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

ROWS = 30


def place(name):
    return pathlib.Path(tempfile.gettempdir()) / name


def _huggingface():
    import datasets

    return datasets


def rows():
    return {
        "text": [f"text {row}" for row in range(ROWS)],
        "ids": [list(range(row % 5 + 1)) for row in range(ROWS)],
        "weight": [row / 7 for row in range(ROWS)],
    }


def upper_texts(batch):
    return {"upper": [text.upper() for text in batch["text"]]}


def has_several_ids(row):
    return len(row["ids"]) > 1


@pipeline(needs=("datasets",), full=True)
def huggingface_map(workers):
    made = _huggingface().Dataset.from_dict(rows()).map(lambda row: {"length": len(row["ids"])})
    return DataLoader(made, 4, shuffle=True, num_workers=workers, collate_fn=list)


@pipeline(needs=("datasets",), full=True)
def huggingface_with_torch_format(workers):
    made = (
        _huggingface()
        .Dataset.from_dict({"x": numpy.arange(60.0).reshape(ROWS, 2), "y": list(range(ROWS))})
        .with_format("torch")
    )
    return DataLoader(made, 4, shuffle=True, num_workers=workers)


@pipeline(needs=("datasets",), full=True)
def huggingface_transformed_when_read(workers):
    made = _huggingface().Dataset.from_dict(rows()).with_transform(upper_texts)
    return DataLoader(made, 4, num_workers=workers)


def stream(shards=4):
    return _huggingface().Dataset.from_dict(rows()).to_iterable_dataset(num_shards=shards)


@pipeline(needs=("datasets",), full=True)
def huggingface_streaming(workers):
    return DataLoader(stream().filter(has_several_ids), 4, num_workers=workers, collate_fn=list)


@pipeline(needs=("datasets",), full=True, before_epoch=lambda loader, epoch: loader.dataset.set_epoch(epoch))
def huggingface_streaming_shuffled(workers):
    return DataLoader(stream().shuffle(seed=3, buffer_size=10), 4, num_workers=workers, collate_fn=list)


@pipeline(needs=("datasets",), full=True)
def huggingface_split_by_node(workers):
    streamed = stream()
    from datasets.distributed import split_dataset_by_node as split

    return DataLoader(split(streamed, rank=1, world_size=2), 4, num_workers=workers, collate_fn=list)


def write_tars(count=4):
    for number in range(count):
        with tarfile.open(place(f"shard-{number}.tar"), "w") as tar:
            for row in range(6):
                for suffix, data in (("txt", f"text {number} {row}"), ("cls", f"{row}")):
                    member = tarfile.TarInfo(f"{number}-{row}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data.encode()))
    return [str(place(f"shard-{number}.tar")) for number in range(count)]


@pipeline(needs=("webdataset",), full=True)
def webdataset_tars(workers):
    import webdataset

    made = webdataset.WebDataset(write_tars(), shardshuffle=False, empty_check=False).decode().to_tuple("txt", "cls")
    return DataLoader(made, 4, num_workers=workers)


@pipeline(needs=("webdataset",), full=True)
def webdataset_split_by_node(workers):
    import webdataset
    from pipelines.iterables import be_rank

    be_rank(1, 2)
    made = webdataset.WebDataset(
        write_tars(), shardshuffle=False, nodesplitter=webdataset.split_by_node, empty_check=False
    )
    return DataLoader(made.decode().to_tuple("txt", "cls").batched(3), batch_size=None, num_workers=workers)


@pipeline(needs=("webdataset",), full=True, resumes=False)
def webdataset_its_own_loader(workers):
    import webdataset

    made = webdataset.WebDataset(write_tars(), shardshuffle=False, empty_check=False).decode().to_tuple("txt", "cls")
    return webdataset.WebLoader(made, batch_size=3, num_workers=workers).pipeline[0]


@pipeline(needs=("torchdata",), full=True, resumes=False, num_workers=(2,))
def torchdata_stateful_loader(workers):
    from pipelines.everyday import Numbers
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=workers)


class RowGroups(IterableDataset):
    def __init__(self):
        import pyarrow
        import pyarrow.parquet

        self.path = str(place("rows.parquet"))
        pyarrow.parquet.write_table(pyarrow.table(rows()), self.path, row_group_size=6)

    def __iter__(self):
        import pyarrow.parquet

        info, file = get_worker_info(), pyarrow.parquet.ParquetFile(self.path)
        for group in range(info.id if info else 0, file.num_row_groups, info.num_workers if info else 1):
            yield from file.read_row_group(group).to_pylist()


@pipeline(needs=("pyarrow",), full=True)
def parquet_by_row_groups(workers):
    return DataLoader(RowGroups(), 4, num_workers=workers, collate_fn=list)


class Arrow(Dataset):
    def __init__(self):
        import pyarrow

        self.table = pyarrow.table(rows())

    def __len__(self):
        return len(self.table)

    def __getitems__(self, indices):
        return self.table.take(indices).to_pylist()


@pipeline(needs=("pyarrow",), full=True)
def a_table_of_arrow(workers):
    return DataLoader(Arrow(), 4, shuffle=True, num_workers=workers, collate_fn=list)


class H5(Dataset):
    file = None

    def __init__(self):
        import h5py

        self.path = str(place("rows.h5"))
        with h5py.File(self.path, "w") as file:
            file["x"] = numpy.arange(ROWS * 4.0).reshape(ROWS, 4)
            file["name"] = [f"row {row}" for row in range(ROWS)]

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        import h5py

        self.file = self.file or h5py.File(self.path, "r")
        return self.file["x"][index], self.file["name"][index]


@pipeline(needs=("h5py",), full=True)
def h5py_opened_at_first_use(workers):
    return DataLoader(H5(), 4, shuffle=True, num_workers=workers)


class Lmdb(Dataset):
    environment = None

    def __init__(self):
        import lmdb

        self.path = str(place("rows.lmdb"))
        with lmdb.open(self.path, map_size=1 << 20) as environment, environment.begin(write=True) as transaction:
            for row in range(ROWS):
                transaction.put(f"{row}".encode(), bytes([row]) * 9)

    def open(self):
        import lmdb

        return lmdb.open(self.path, readonly=True, lock=False, readahead=False)

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        self.environment = self.environment or self.open()
        with self.environment.begin() as transaction:
            return numpy.frombuffer(transaction.get(f"{index}".encode()), "u1").copy()


@pipeline(needs=("lmdb",), full=True)
def lmdb_opened_at_first_use(workers):
    return DataLoader(Lmdb(), 4, shuffle=True, num_workers=workers)


class LmdbByWorker(Lmdb):
    """As many codes do: each worker opens it in worker_init_fn."""


def open_lmdb(worker):
    dataset = get_worker_info().dataset
    dataset.environment = dataset.open()


@pipeline(needs=("lmdb",), num_workers=(2,), full=True, survives=False)
def lmdb_opened_by_worker_init_fn(workers):
    return DataLoader(LmdbByWorker(), 4, shuffle=True, num_workers=workers, worker_init_fn=open_lmdb)


class Zarr(Dataset):
    def __init__(self):
        import zarr

        self.array = zarr.open_array(str(place("rows.zarr")), mode="w", shape=(ROWS, 4), chunks=(5, 4), dtype="f4")
        self.array[:] = numpy.arange(ROWS * 4.0).reshape(ROWS, 4)

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return torch.from_numpy(numpy.asarray(self.array[index]))


@pipeline(needs=("zarr",), full=True)
def chunks_of_zarr(workers):
    return DataLoader(Zarr(), 4, shuffle=True, num_workers=workers)


class Frame(Dataset):
    def __init__(self):
        import pandas

        self.frame = pandas.DataFrame(rows())

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, index):
        row = self.frame.iloc[index]
        return {"text": row["text"], "weight": row["weight"], "length": len(row["ids"])}


@pipeline(needs=("pandas",), full=True)
def a_frame_of_pandas(workers):
    return DataLoader(Frame(), 4, shuffle=True, num_workers=workers)


@pipeline(needs=("litdata",), full=True, resumes=False, seconds=180.0)
def litdata_streaming(workers):
    """Samples in chunks that a dataset of its own streams."""
    from litdata import StreamingDataset
    from litdata.streaming.writer import BinaryWriter

    folder = pathlib.Path(tempfile.mkdtemp()) / "chunks"
    writer = BinaryWriter(str(folder), chunk_size=8)
    for number in range(40):
        writer[number] = {"index": number, "values": numpy.arange(number, number + 5)}
    writer.done()
    writer.merge()
    return DataLoader(StreamingDataset(str(folder), shuffle=True, seed=3), 4, num_workers=workers)
