"""Batches of random nesting, types and layouts, the same for a seed in every process, and what tells two apart."""

import collections
import dataclasses
import datetime
import enum
import itertools
import random
import struct

import numpy
import torch
from torch.utils.data import Dataset

DTYPES = [
    getattr(torch, name)
    for name in (
        "float32 float64 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 int16 int32 int64 "
        "uint16 uint32 uint64 bool complex32 complex64 complex128"
    ).split()
]
ARRAY_DTYPES = [
    *"<f4 f2 f8 i8 u1 ? c8 S3 U2 M8[s] m8[ns] g".split(),
    [("a", "i1"), ("b", ">f8")],
    [("x", "f4", (2, 2)), ("y", "S2")],
]


class Image(torch.Tensor):
    """A tensor subclass."""


class Point(collections.namedtuple("Point", "x y")):
    """A namedtuple subclass that has attributes."""


class Items(list):
    """A list with attributes."""


class Table(dict):
    """A dictionary with attributes."""


class Text(str):
    """A string with attributes."""


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 7


@dataclasses.dataclass
class Sample:
    image: object
    label: object


def with_note(value, number):
    value.note = number
    return value


def nothing():
    return 0


def as_it_is(batch):
    return batch


def keyed(items):
    names = [lambda n: n, "k{}".format, "ключ{}".format, "{}\ud800".format]
    return {names[(number + len(items)) % 4](number): item for number, item in enumerate(items)}


CONTAINERS = [
    list,
    list,
    tuple,
    keyed,
    keyed,
    lambda items: collections.OrderedDict(keyed(items)),
    lambda items: collections.defaultdict(nothing, keyed(items)),
    lambda items: Point(items, 1),
    lambda items: with_note(Point(1, items), 3),
    lambda items: with_note(Items(items), items),
    lambda items: with_note(Table(keyed(items)), 1),
    lambda items: Sample(items, None),
    lambda items: collections.deque(items, 9),
]
ROWS = [
    lambda value: value.swapaxes(0, -1),
    lambda value: value[::2],
    lambda value: value[1:],
    lambda value: value[..., :1],
]
TENSOR_LAYOUTS = [
    as_it_is,
    as_it_is,
    lambda tensor: tensor.unsqueeze(0).expand(3, *tensor.shape),
    lambda tensor: tensor.unsqueeze(-1).expand(*tensor.shape, 2),
    lambda tensor: tensor.reshape(-1).as_strided((3, 3), (1, 1)) if tensor.numel() > 4 else tensor,
]
ARRAY_LAYOUTS = [
    as_it_is,
    as_it_is,
    numpy.asfortranarray,
    lambda array: numpy.frombuffer(array.tobytes(), array.dtype).reshape(array.shape) if array.size else array,
    lambda array: numpy.broadcast_to(array, (2, *array.shape)),
    lambda array: numpy.ma.masked_array(numpy.arange(array.size + 1)),
    lambda array: numpy.array([1, "x", None], object),
]
VALUES = [
    lambda bits: -bits(200),
    lambda bits: struct.unpack("<d", struct.pack("<Q", bits(64)))[0],
    lambda bits: struct.unpack("<d", struct.pack("<Q", bits(50) | 0x7FF8 << 48))[0],
    lambda bits: None,
    lambda bits: "s" * bits(9) + chr(0xD800) + chr(0x4E00),
    lambda bits: bytes(range(bits(6))),
    lambda bits: bytearray(b"xyz"),
    lambda bits: complex(bits(4), -0.0),
    lambda bits: Colour.RED,
    lambda bits: Level.HIGH,
    lambda bits: with_note(Text("text"), 2),
    lambda bits: numpy.float32(bits(8)),
    lambda bits: numpy.datetime64("2024-01-01"),
    lambda bits: numpy.str_("n"),
    lambda bits: {1, 2, 3},
    lambda bits: range(2, 9, 3),
    lambda bits: datetime.date(2024, 2, 29),
    lambda bits: [str(number) for number in range(bits(7))],
    lambda bits: torch.Size((1, 2)),
    lambda bits: torch.float16,
]


class Generator:
    """Makes one batch out of one seed."""

    def __init__(self, seed):
        self._random, self._made = random.Random(seed), []

    def batch(self, depth=3):
        choice = self._random.choice
        if depth and self._random.random() < 0.6:
            made = choice(CONTAINERS)([self.batch(depth - 1) for _ in range(choice([0, 1, 2, 3, 5]))])
        elif self._made and self._random.random() < 0.1:
            return self._again(choice(self._made))
        else:
            made = choice([self._tensor, self._tensor, self._array, lambda: choice(VALUES)(self._random.getrandbits)])()
        self._made.append(made)
        return made

    def _again(self, value):
        """What is in the batch already, or shares its memory."""
        has_rows = type(value) in (torch.Tensor, numpy.ndarray) and value.ndim and self._random.random() < 0.7
        has_rows = has_rows and not getattr(value, "requires_grad", False) and is_in_memory(value)
        return value[len(value) // 2 :] if has_rows else value

    def _bytes(self, itemsize):
        shape = [self._random.choice([0, 1, 1, 2, 3, 5]) for _ in range(self._random.choice([0, 1, 1, 2, 3, 4]))]
        return bytearray(self._random.randbytes(int(numpy.prod(shape, dtype=int)) * itemsize)), shape

    def _tensor(self):
        dtype = self._random.choice(DTYPES)
        data, shape = self._bytes(dtype.itemsize)
        flat = torch.tensor([*data], dtype=torch.uint8)
        tensor = ((flat > 127) if dtype == torch.bool else flat.view(dtype)).view(shape)
        return self._flagged(self._random.choice(TENSOR_LAYOUTS + ROWS * bool(shape))(tensor))

    def _flagged(self, tensor):
        options = [lambda: tensor] * 6
        if tensor.dtype in (torch.float32, torch.float64, torch.int64):  # torch's own pickles of others cannot be read
            options += [
                lambda: tensor.detach().as_subclass(Image),
                lambda: with_note(tensor.clone().as_subclass(Image), 5),
            ]
            options += [lambda: tensor.to_sparse(), lambda: tensor.clone().share_memory_()] * bool(tensor.ndim)
            options += [lambda: tensor.to_sparse_csr()] * (tensor.ndim == 2)
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            options += [
                lambda: tensor.detach().requires_grad_(),
                lambda: torch.nn.Parameter(tensor.detach(), False),
                lambda: torch.nn.Parameter(tensor.detach()),
            ]
        return self._random.choice(options)()

    def _array(self):
        dtype = numpy.dtype(self._random.choice(ARRAY_DTYPES))
        data, shape = self._bytes(dtype.itemsize)
        array = numpy.frombuffer(data, dtype).reshape(shape) if data else numpy.zeros(shape, dtype)
        if dtype.kind not in "fciuV" and array.size:
            some = ["1", "2", "0"] if dtype.kind in "SU" else [0, 1]
            array.reshape(-1)[:] = [self._random.choice(some) for _ in range(array.size)]
        backwards = [lambda array: array[..., ::-1]]
        return self._random.choice(ARRAY_LAYOUTS + (ROWS + backwards) * bool(shape))(array)


class Generated(Dataset):
    """One batch for each index."""

    def __init__(self, seed, size):
        self.seed, self.size = seed, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return Generator(self.seed * 1_000_003 + index).batch()


def difference(one, other):
    """Empty where `other` is what arrives of `one`: types, bits, layouts, attributes, what is shared with what."""
    looks = _Looks(), _Looks()
    for seen, found in itertools.zip_longest(looks[0].of(one), looks[1].of(other)):
        if seen != found:
            return f"{seen} is not {found}"
    pairs = [pair for pair in zip(looks[0].in_memory, looks[1].in_memory) if not _is_small_part(pair[0])]
    laid_out = [[_strides(value) for value in each] + _sharing(each) for each in zip(*pairs)]
    return "" if not pairs or laid_out[0] == laid_out[1] else f"{laid_out[0]} is not {laid_out[1]}"


class _Looks:
    """What a program can see of a batch, part by part; `in_memory` are its tensors and arrays."""

    def __init__(self):
        self._numbers, self._kept, self.in_memory = {}, [], []

    def of(self, value, path="batch"):
        if isinstance(value, (int, str, float, bytes, complex, type(None), enum.Enum)):
            yield path, type(value), repr(value), type(value) is float and struct.pack("<d", value)
        elif id(value) in self._numbers:
            yield path, "the same object as part", self._numbers[id(value)]
            return
        else:
            self._numbers[id(value)] = len(self._kept)
            self._kept.append(value)
            yield path, type(value)
            yield from self._inside(value, path)
        if not isinstance(value, (enum.Enum, numpy.ndarray)):
            yield from self._parts([*getattr(value, "__dict__", {}).items()], f"{path}.__dict__")

    def _inside(self, value, path):
        if isinstance(value, (torch.Tensor, numpy.ndarray)):
            if is_in_memory(value):
                self.in_memory.append(value)
            yield from (self._tensor if isinstance(value, torch.Tensor) else self._array)(value, path)
        elif isinstance(value, dict):
            yield from self._parts([*value.items()], path)
        elif isinstance(value, (list, tuple, collections.deque)):
            yield from self._parts(value, path)
        elif not dataclasses.is_dataclass(value):
            yield path, repr(value)

    def _parts(self, values, path):
        self._kept.append(values)
        yield f"{path}: its length", len(values)
        for number, value in enumerate(values):
            yield from self.of(value, f"{path}[{number}]")

    def _tensor(self, value, path):
        yield path, value.dtype, value.layout, value.requires_grad, value.is_nested, value.is_quantized, value.is_leaf
        if value.is_nested:
            return (yield from self._parts(value.unbind(), path))
        yield path, value.shape
        if value.layout is torch.sparse_coo:
            yield from self._parts([value.is_coalesced(), value._indices(), value._values()], path)
        elif value.layout is torch.sparse_csr:
            yield from self._parts([value.crow_indices(), value.col_indices(), value.values()], path)
        elif value.is_quantized:
            yield from self._parts([value.int_repr(), value.stride(), value.q_scale(), value.q_zero_point()], path)
        else:
            plain = value.detach().as_subclass(torch.Tensor).resolve_neg().resolve_conj()
            alone = torch.empty(plain.shape, dtype=plain.dtype).copy_(plain)
            yield path, alone.reshape(-1).view(torch.uint8).numpy().tobytes()

    def _array(self, value, path):
        yield path, value.dtype, value.dtype.str, value.shape, value.flags.writeable
        yield from self._parts(value.tolist() if value.dtype.hasobject else [value.tobytes()], path)


def is_in_memory(value):
    if isinstance(value, numpy.ndarray):
        return not value.dtype.hasobject
    return value.layout is torch.strided and not value.is_quantized and not value.is_nested


def _is_small_part(value):
    """Of which only the elements arrive."""
    return isinstance(value, torch.Tensor) and 2 * value.nbytes < value.untyped_storage().nbytes()


def _strides(value):
    return value.size and value.strides if isinstance(value, numpy.ndarray) else value.stride()


def _sharing(values):
    """How far from each other those begin that lie in each other's memory."""
    spans = [_span(value) for value in values]
    return [
        (n, m, one[0] - other[0])
        for n, one in enumerate(spans)
        for m, other in enumerate(spans[:n])
        if one[0] < other[1] and other[0] < one[1]
    ]


def _span(value):
    if isinstance(value, numpy.ndarray):
        return numpy.lib.array_utils.byte_bounds(value) if value.size else (0, 0)
    steps = sum((size - 1) * step for size, step in zip(value.shape, value.stride()))
    return (value.data_ptr(), value.data_ptr() + (steps + 1) * value.itemsize) if value.numel() else (0, 0)
