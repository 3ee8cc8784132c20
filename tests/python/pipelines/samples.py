"""What samples and batches are made of: dtypes, layouts, classes, nesting."""

import collections
import dataclasses
import typing

import numpy
import torch
from differential.pipeline import of_samples
from torch.utils.data import DataLoader, Dataset, default_convert


def without_meta(worker):
    """A setting of MONAI's, which started workers have anew."""
    from monai.data import set_track_meta

    set_track_meta(False)


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


def loader_of(make, workers, collate_fn=as_they_are):
    return DataLoader(Made(make), 4, num_workers=workers, collate_fn=collate_fn)


TENSOR_DTYPES = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.uint16,
    torch.uint32,
]


@of_samples()
def tensors_of_all_dtypes(workers):
    return loader_of(lambda index: [torch.arange(6).to(dtype).view(2, 3) for dtype in TENSOR_DTYPES], workers)


def laid_out(index):
    base = torch.arange(24.0).view(4, 6) + index
    return {
        "transposed": base.t(),
        "every second": base[:, ::2],
        "expanded": torch.arange(3).expand(4, 3),
        "a column": base[:, 1],
        "offset": base[2:],
        "channels last": torch.rand(1, 2, 3, 4, generator=torch.Generator().manual_seed(index)).to(
            memory_format=torch.channels_last
        ),
        "flipped": base.flip(0),
        "a window": base.unfold(1, 3, 1),
    }


@of_samples()
def tensors_of_all_layouts(workers):
    return loader_of(laid_out, workers)


def odd_shapes(index):
    return [
        torch.tensor(index),
        torch.empty(0),
        torch.empty(3, 0, 2),
        torch.ones(1, 1, 1),
        numpy.array(index),
        numpy.empty((0, 4)),
        torch.empty(2, 0).t(),
        torch.zeros(5)[:0],
    ]


@of_samples()
def of_no_size_and_no_dimensions(workers):
    return loader_of(odd_shapes, workers)


@of_samples()
def leaves_that_need_a_gradient(workers):
    return loader_of(
        lambda index: [
            torch.arange(12.0).view(3, 4).t().requires_grad_(),
            torch.nn.Parameter(torch.ones(2, index + 1)),
        ],
        workers,
    )


class Image(torch.Tensor):
    """As torchvision's tv_tensors: a subclass with attributes."""


def image(index):
    made = torch.full((3, 2, 2), float(index)).as_subclass(Image)
    made.canvas = (2, index)
    return made


@of_samples()
def subclasses_of_tensors(workers):
    return loader_of(image, workers)


@of_samples(num_workers=(2,))
def sparse_tensors(workers):
    return loader_of(lambda index: torch.eye(3).mul(index).to_sparse(), workers)


@of_samples()
def compressed_sparse_tensors(workers):
    return loader_of(lambda index: torch.eye(3).mul(index + 1).to_sparse_csr(), workers)


@of_samples()
def shared_tensors(workers):
    return loader_of(lambda index: torch.arange(3).share_memory_() + index, workers)


def twice(samples):
    batch = torch.stack(samples)
    return {"input": batch, "label": batch, "rows": [batch[0], batch[0]], "lists": [samples, samples]}


@of_samples()
def one_object_in_two_places(workers):
    return loader_of(lambda index: torch.full((2,), index), workers, twice)


NUMPY_DTYPES = ["u1", "i2", "<i4", "i8", "?", "f2", "f4", "f8", "c8", "S5", "U7", "M8[s]", "m8[ms]", "V3"]


@of_samples()
def arrays_of_all_dtypes(workers):
    return loader_of(lambda index: [numpy.zeros((2, index % 3), dtype) for dtype in NUMPY_DTYPES], workers)


def arrays(index):
    base = numpy.arange(12.0).reshape(3, 4) + index
    return {
        "of Fortran": numpy.asfortranarray(base),
        "transposed": base.T,
        "backwards": base[::-1],
        "of objects": numpy.array([index, "x", None], dtype=object),
        "structured": numpy.array([(index, 1.5)], dtype=[("a", "i4"), ("b", "f8")]),
        "records": numpy.rec.array([(index, "x")], dtype=[("a", "i4"), ("b", "U3")]),
        "aligned": numpy.zeros(2, numpy.dtype([("a", "u1"), ("b", "f8")], align=True)),
        "matrix": numpy.asmatrix(base),
        "read only": numpy.frombuffer(b"abcd", "u1"),
    }


@of_samples()
def arrays_of_all_layouts(workers):
    return loader_of(arrays, workers)


@of_samples()
def masked_arrays(workers):
    return loader_of(lambda index: numpy.ma.array([1.0, 2.0, index], mask=[0, 1, index % 2], fill_value=9), workers)


@of_samples()
def scalars_of_numpy(workers):
    return loader_of(
        lambda index: [numpy.float32(index / 3), numpy.int16(index), numpy.bool_(index), numpy.datetime64(index, "D")],
        workers,
    )


@of_samples(needs=("ml-dtypes",))
def dtypes_of_ml_dtypes(workers):
    def made(index):
        import ml_dtypes

        return [numpy.arange(4).astype(ml_dtypes.bfloat16), numpy.arange(4).astype(ml_dtypes.float8_e4m3fn)]

    return loader_of(made, workers)


Point = collections.namedtuple("Point", "x y")


class Named(Point):
    """A subclass of a named tuple, with attributes."""


class Typed(typing.NamedTuple):
    image: torch.Tensor
    label: int = 3


def named(index):
    made = Named(index, torch.ones(2))
    made.source = f"file {index}"
    return made, Typed(torch.zeros(2)), Point(1, Point(2, 3))


@of_samples()
def named_tuples(workers):
    return loader_of(named, workers)


@dataclasses.dataclass
class Item:
    image: torch.Tensor
    boxes: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    name: str
    place: tuple = ()


@of_samples()
def dataclasses_of_tensors(workers):
    return loader_of(lambda index: [Item(torch.full((2,), index), [index]), Frozen(f"{index}", (1, index))], workers)


@of_samples()
def collated_by_default(workers):
    return loader_of(
        lambda index: {
            "a": [index, index / 3],
            "b": Point(numpy.float32(index), torch.ones(2)),
            "c": "x",
            "d": numpy.ones(3),
        },
        workers,
        None,
    )


@of_samples()
def collated_by_default_convert(workers):
    return DataLoader(
        Made(lambda index: {"a": numpy.ones(3) * index, "b": "x"}),
        batch_size=None,
        collate_fn=default_convert,
        num_workers=workers,
    )


class Drops:
    """Its own pickling leaves an attribute out, as BatchEncoding's of transformers does."""

    def __init__(self, index):
        self.index, self.seen = index, None

    def __getstate__(self):
        return {"index": self.index}

    def __setstate__(self, state):
        self.index = state["index"]


@of_samples()
def objects_whose_pickling_drops_an_attribute(workers):
    return loader_of(Drops, workers)
