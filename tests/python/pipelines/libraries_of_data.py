"""Libraries that bring data: webdataset, torchdata, HF datasets, pyarrow, h5py, lmdb, zarr, pandas, litdata."""

import io
import tarfile

import numpy
import torch
from differential.pipeline import pipeline
from own_datasets import Numbers
from pipelines.everyday import Made
from pipelines.iterables import be_rank, of_this_worker
from pipelines.storage import ROWS, Opened, place
from torch.utils.data import DataLoader, Dataset, IterableDataset


def rows():
    return {
        "text": [f"text {row}" for row in range(ROWS)],
        "ids": [list(range(row % 5 + 1)) for row in range(ROWS)],
        "weight": [row / 7 for row in range(ROWS)],
    }


def huggingface_rows():
    import datasets

    return datasets.Dataset.from_dict(rows())


@pipeline(needs="datasets")
def huggingface_map(workers):
    made = huggingface_rows().map(lambda row: {"length": len(row["ids"])}).with_format("torch")
    return DataLoader(made, 4, shuffle=True, num_workers=workers, collate_fn=list)


def upper_texts(batch):
    return {"upper": [text.upper() for text in batch["text"]]}


@pipeline(needs="datasets")
def huggingface_transformed_when_read(workers):
    return DataLoader(huggingface_rows().with_transform(upper_texts), 4, num_workers=workers)


@pipeline(needs="datasets", before_epoch=lambda loader, epoch: loader.dataset.set_epoch(epoch))
def huggingface_streaming(workers):
    made = huggingface_rows().to_iterable_dataset(num_shards=4).filter(lambda row: len(row["ids"]) > 1)
    return DataLoader(made.shuffle(seed=3, buffer_size=10), 4, num_workers=workers, collate_fn=list)


@pipeline(needs="datasets")
def huggingface_split_by_node(workers):
    from datasets.distributed import split_dataset_by_node as split

    streamed = huggingface_rows().to_iterable_dataset(num_shards=4)
    return DataLoader(split(streamed, rank=1, world_size=2), 4, num_workers=workers, collate_fn=list)


def tars(count=4, **options):
    import webdataset

    for number in range(count):
        with tarfile.open(place(f"shard-{number}.tar"), "w") as tar:
            for row in range(6):
                for suffix, data in (("txt", f"text {number} {row}"), ("cls", f"{row}")):
                    member = tarfile.TarInfo(f"{number}-{row}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data.encode()))
    paths = [str(place(f"shard-{number}.tar")) for number in range(count)]
    made = webdataset.WebDataset(paths, shardshuffle=False, empty_check=False, **options)
    return made.decode().to_tuple("txt", "cls")


@pipeline(needs="webdataset")
def webdataset_split_by_node(workers):
    import webdataset

    be_rank(1, 2)
    made = tars(nodesplitter=webdataset.split_by_node).batched(3)
    return DataLoader(made, batch_size=None, num_workers=workers)


@pipeline(needs="webdataset", resumes=False)
def webdataset_its_own_loader(workers):
    import webdataset

    return webdataset.WebLoader(tars(), batch_size=3, num_workers=workers).pipeline[0]


@pipeline(needs="torchdata", resumes=False, num_workers=(2,))
def torchdata_stateful_loader(workers):
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(Numbers(47), batch_size=4, shuffle=True, num_workers=workers)


class RowGroups(IterableDataset):
    def __init__(self):
        import pyarrow
        import pyarrow.parquet

        self.path = str(place("rows.parquet"))
        pyarrow.parquet.write_table(pyarrow.table(rows()), self.path, row_group_size=6)

    def __iter__(self):
        import pyarrow.parquet

        file = pyarrow.parquet.ParquetFile(self.path)
        for group in of_this_worker(range(file.num_row_groups)):
            yield from file.read_row_group(group).to_pylist()


@pipeline(needs="pyarrow")
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


@pipeline(needs="pyarrow")
def a_table_of_arrow(workers):
    return DataLoader(Arrow(), 4, shuffle=True, num_workers=workers, collate_fn=list)


@pipeline(needs="h5py")
def h5py_opened_at_first_use(workers):
    import h5py

    path = str(place("rows.h5"))
    with h5py.File(path, "w") as file:
        file["x"] = numpy.arange(ROWS * 4.0).reshape(ROWS, 4)
        file["name"] = [f"row {row}" for row in range(ROWS)]
    made = Opened(lambda: h5py.File(path, "r"), lambda file, index: (file["x"][index], file["name"][index]))
    return DataLoader(made, 4, shuffle=True, num_workers=workers)


@pipeline(needs="lmdb")
def lmdb_opened_at_first_use(workers):
    import lmdb

    path = str(place("rows.lmdb"))
    with lmdb.open(path, map_size=1 << 20) as environment, environment.begin(write=True) as transaction:
        for row in range(ROWS):
            transaction.put(f"{row}".encode(), bytes([row]) * 9)

    def read(environment, index):
        with environment.begin() as transaction:
            return numpy.frombuffer(transaction.get(f"{index}".encode()), "u1").copy()

    made = Opened(lambda: lmdb.open(path, readonly=True, lock=False, readahead=False), read)
    return DataLoader(made, 4, shuffle=True, num_workers=workers)


@pipeline(needs="zarr")
def chunks_of_zarr(workers):
    import zarr

    made = Opened(None, lambda array, index: torch.from_numpy(numpy.asarray(array[index])))
    made.opened = zarr.open_array(str(place("rows.zarr")), mode="w", shape=(ROWS, 4), chunks=(5, 4), dtype="f4")
    made.opened[:] = numpy.arange(ROWS * 4.0).reshape(ROWS, 4)
    return DataLoader(made, 4, shuffle=True, num_workers=workers)


@pipeline(needs="pandas")
def a_frame_of_pandas(workers):
    import pandas

    frame = pandas.DataFrame(rows())
    return DataLoader(Made(lambda index: dict(frame.iloc[index]), ROWS), 4, num_workers=workers, collate_fn=list)


@pipeline(needs="litdata", resumes=False)
def litdata_streaming(workers):
    """Samples in chunks that a dataset of its own streams."""
    from litdata import StreamingDataset
    from litdata.streaming.writer import BinaryWriter

    folder = str(place("chunks"))
    writer = BinaryWriter(folder, chunk_size=8)
    for number in range(40):
        writer[number] = {"index": number, "values": numpy.arange(number, number + 5)}
    writer.done()
    writer.merge()
    return DataLoader(StreamingDataset(folder, shuffle=True, seed=3), 4, num_workers=workers)
