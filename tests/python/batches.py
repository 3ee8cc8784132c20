"""Batches of random nesting, types and layouts, the same for a seed in every process, and what tells two apart."""

import collections
import dataclasses
import datetime
import enum
import random
import struct

import numpy
import torch
from torch.utils.data import Dataset

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
    torch.complex32,
    torch.complex64,
    torch.complex128,
]
ARRAY_DTYPES = [
    "<f4",
    "f2",
    "f8",
    "i8",
    "u1",
    "?",
    "c8",
    "S3",
    "U2",
    "M8[s]",
    "m8[ns]",
    "g",
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


class Generator:
    """Makes one batch out of one seed."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._made = []

    def batch(self, depth=3):
        if depth and self._random.random() < 0.6:
            return self._container(depth - 1)
        if self._made and self._random.random() < 0.1:
            return self._again()
        made = self._random.choice([self._tensor, self._tensor, self._array, self._value])()
        self._made.append(made)
        return made

    def _container(self, depth):
        items = [self.batch(depth) for _ in range(self._random.choice([0, 1, 2, 3, 5]))]
        names = ["k%d", "ключ%d", "%d\ud800"]
        keys = [self._random.choice(names) % n if self._random.random() < 0.7 else n for n in range(len(items))]
        pairs = list(zip(keys, items))
        made = self._random.choice(
            [
                lambda: items,
                lambda: items,
                lambda: tuple(items),
                lambda: dict(pairs),
                lambda: dict(pairs),
                lambda: collections.OrderedDict(pairs),
                lambda: collections.defaultdict(nothing, pairs),
                lambda: Point(items, 1),
                lambda: with_note(Point(1, items), 3),
                lambda: with_note(Items(items), items),
                lambda: with_note(Table(pairs), 1),
                lambda: Sample(items, None),
                lambda: collections.deque(items, 9),
            ]
        )()
        self._made.append(made)
        return made

    def _again(self):
        """Something that is in the batch already, or shares its memory."""
        value = self._random.choice(self._made)
        if type(value) in (torch.Tensor, numpy.ndarray) and value.ndim and self._random.random() < 0.7:
            return (
                value[len(value) // 2 :]
                if not getattr(value, "requires_grad", False) and value_is_strided(value)
                else value
            )
        return value

    def _shape(self):
        return tuple(self._random.choice([0, 1, 1, 2, 3, 5]) for _ in range(self._random.choice([0, 1, 1, 2, 3, 4])))

    def _tensor(self):
        dtype, shape = self._random.choice(DTYPES), self._shape()
        count = int(numpy.prod(shape, dtype=int))
        data = bytearray(self._random.randbytes(max(1, count) * dtype.itemsize))
        flat = torch.frombuffer(data, dtype=torch.uint8)
        flat = (flat > 127) if dtype == torch.bool else flat.view(dtype)
        return self._flagged(self._laid_out(flat[:count].view(shape)))

    def _laid_out(self, tensor):
        view = self._random.choice(
            [
                lambda: tensor,
                lambda: tensor,
                lambda: tensor,
                lambda: tensor.permute(tuple(reversed(range(tensor.ndim)))),
                lambda: tensor[::2] if tensor.ndim else tensor,
                lambda: tensor[..., :1] if tensor.ndim else tensor,
                lambda: tensor[1:] if tensor.ndim else tensor,
                lambda: tensor.unsqueeze(0).expand(3, *tensor.shape),
                lambda: tensor.unsqueeze(-1).expand(*tensor.shape, 2),
                lambda: tensor.reshape(-1).as_strided((3, 3), (1, 1)) if tensor.numel() > 4 else tensor,
            ]
        )()
        return view

    def _flagged(self, tensor):
        floating = tensor.dtype.is_floating_point or tensor.dtype.is_complex
        is_usual = tensor.dtype in (torch.float32, torch.float64, torch.int64)
        options = [lambda: tensor] * 6
        if is_usual:  # torch's own pickles of others cannot be read
            options += [
                lambda: tensor.detach().as_subclass(Image),
                lambda: with_note(tensor.clone().as_subclass(Image), 5),
            ]
        if floating:
            options += [
                lambda: tensor.detach().requires_grad_(),
                lambda: torch.nn.Parameter(tensor.detach(), False),
                lambda: torch.nn.Parameter(tensor.detach()),
            ]
        if is_usual and tensor.ndim:
            options += [lambda: tensor.to_sparse(), lambda: tensor.clone().share_memory_()]
        if is_usual and tensor.ndim == 2:
            options += [lambda: tensor.to_sparse_csr()]
        return self._random.choice(options)()

    def _array(self):
        dtype, shape = numpy.dtype(self._random.choice(ARRAY_DTYPES)), self._shape()
        array = numpy.zeros(shape, dtype)
        if dtype.kind in "fciuV":
            array = numpy.frombuffer(bytearray(self._random.randbytes(max(1, array.nbytes))), "u1", array.nbytes).copy()
            array = array.view(dtype).reshape(shape) if array.nbytes else numpy.zeros(shape, dtype)
        elif array.size:
            some = ["1", "2", "0"] if dtype.kind in "SU" else [0, 1]
            array.reshape(-1)[:] = [self._random.choice(some) for _ in range(array.size)]
        return self._array_laid_out(array)

    def _array_laid_out(self, array):
        read_only = array.copy()
        read_only.flags.writeable = False
        return self._random.choice(
            [
                lambda: array,
                lambda: array,
                lambda: array.T,
                lambda: array.transpose(*range(1, array.ndim), 0) if array.ndim else array,
                lambda: read_only,
                lambda: numpy.asfortranarray(array),
                lambda: array[..., ::-1] if array.ndim else array,
                lambda: array[::2] if array.ndim else array,
                lambda: numpy.broadcast_to(array, (2, *array.shape)),
                lambda: numpy.ma.masked_array(numpy.arange(array.size + 1)),
                lambda: numpy.array([1, "x", None], object),
            ]
        )()

    def _value(self):
        bits = self._random.getrandbits
        return self._random.choice(
            [
                lambda: bits(8),
                lambda: -bits(63),
                lambda: bits(200),
                lambda: struct.unpack("<d", struct.pack("<Q", bits(64)))[0],
                lambda: struct.unpack("<d", struct.pack("<Q", bits(50) | 0x7FF8 << 48))[0],
                lambda: -0.0,
                lambda: None,
                lambda: True,
                lambda: "s" * bits(9),
                lambda: chr(0xD800) + chr(0x4E00),
                lambda: self._random.randbytes(bits(6)),
                lambda: bytearray(b"xyz"),
                lambda: complex(bits(4), -0.0),
                lambda: Colour.RED,
                lambda: Level.HIGH,
                lambda: with_note(Text("text"), 2),
                lambda: numpy.float32(bits(8)),
                lambda: numpy.datetime64("2024-01-01"),
                lambda: numpy.str_("n"),
                lambda: {1, 2, 3},
                lambda: frozenset((4,)),
                lambda: range(2, 9, 3),
                lambda: slice(1, None),
                lambda: datetime.date(2024, 2, 29),
                lambda: list(range(bits(8))),
                lambda: [str(n) for n in range(bits(7))],
                lambda: torch.Size((1, 2)),
                lambda: torch.float16,
                lambda: 1,
            ]
        )()


def value_is_strided(value):
    if isinstance(value, numpy.ndarray):
        return not value.dtype.hasobject
    return value.layout is torch.strided and not value.is_quantized


def is_small_part(value):
    """Of which only the elements arrive."""
    return isinstance(value, torch.Tensor) and 2 * value.nbytes < value.untyped_storage().nbytes()


class Generated(Dataset):
    """One batch for each index."""

    def __init__(self, seed, size):
        self.seed, self.size = seed, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return Generator(self.seed * 1_000_003 + index).batch()


def as_it_is(batch):
    return batch


def difference(one, other):
    """Empty where `other` is what arrives of `one`: types, bits, layouts, attributes, what is shared with what."""
    leaves = [], []
    found = _Comparison(*leaves).of(one, other, "batch")
    if found:
        return found
    in_memory = [
        pair
        for pair in zip(*leaves)
        if isinstance(pair[0], (torch.Tensor, numpy.ndarray))
        and value_is_strided(pair[0])
        and not is_small_part(pair[0])
    ]
    shared = [_sharing(each) for each in zip(*in_memory)]
    if not shared:
        return ""
    return "" if shared[0] == shared[1] else f"what shares memory: {shared[0]} is not {shared[1]}"


class _Comparison:
    def __init__(self, ones, others):
        self._ones, self._others = ones, others

    def of(self, one, other, path):
        if type(one) is not type(other):
            return f"{path}: {type(one)} is not {type(other)}"
        if not isinstance(one, (int, str, float, bytes, complex, type(None), enum.Enum)):
            self._ones.append(one)
            self._others.append(other)
        for seen, what in enumerate(self._ones[:-1]):
            if what is one:
                return "" if self._others[seen] is other else f"{path}: not the same object twice"
        if isinstance(one, torch.Tensor):
            return self._tensor(one, other, path) or self._attributes(one, other, path)
        if isinstance(one, numpy.ndarray):
            return self._array(one, other, path)
        if isinstance(one, dict):
            return self._items([*one.items()], [*other.items()], path) or self._attributes(one, other, path)
        if isinstance(one, (list, tuple, collections.deque)):
            return self._items(one, other, path) or self._attributes(one, other, path)
        if dataclasses.is_dataclass(one):
            return self._attributes(one, other, path)
        alike = repr(one) == repr(other) and one == other
        if type(one) is float:
            alike = struct.pack("<d", one) == struct.pack("<d", other)
        return self._attributes(one, other, path) if alike else f"{path}: {one!r} is not {other!r}"

    def _items(self, one, other, path):
        if len(one) != len(other):
            return f"{path}: {len(one)} items are not {len(other)}"
        return next((found for n, pair in enumerate(zip(one, other)) if (found := self.of(*pair, f"{path}[{n}]"))), "")

    def _attributes(self, one, other, path):
        if isinstance(one, enum.Enum) or not hasattr(one, "__dict__"):
            return ""
        return self.of([*vars(one).items()], [*vars(other).items()], f"{path}.__dict__")

    def _tensor(self, one, other, path):
        for name in ("dtype", "shape", "layout", "requires_grad", "is_quantized", "is_leaf"):
            if getattr(one, name) != getattr(other, name):
                return f"{path}.{name}: {getattr(one, name)} is not {getattr(other, name)}"
        if one.layout is torch.sparse_coo:
            return self._items(*([each.is_coalesced(), each._indices(), each._values()] for each in (one, other)), path)
        if one.layout is torch.sparse_csr:
            return self._items(
                *([each.crow_indices(), each.col_indices(), each.values()] for each in (one, other)), path
            )
        if one.stride() != other.stride() and not is_small_part(one):
            return f"{path}: strides {one.stride()} are not {other.stride()}"
        if one.is_quantized:
            return self._items([one.int_repr(), one.q_scale()], [other.int_repr(), other.q_scale()], path)
        return "" if _bytes(one) == _bytes(other) else f"{path}: {one!r} is not {other!r}"

    def _array(self, one, other, path):
        about = [
            (each.dtype, each.dtype.str, each.shape, each.size and each.strides, each.flags.writeable)
            for each in (one, other)
        ]
        if about[0] != about[1]:
            return f"{path}: {about[0]} is not {about[1]}"
        if one.dtype.hasobject:
            return self._items(one.tolist(), other.tolist(), path)
        return "" if one.tobytes() == other.tobytes() else f"{path}: {one!r} is not {other!r}"


def _bytes(tensor):
    plain = tensor.detach().as_subclass(torch.Tensor).resolve_neg().resolve_conj()
    return torch.empty(plain.shape, dtype=plain.dtype).copy_(plain).reshape(-1).view(torch.uint8).numpy().tobytes()


def _sharing(leaves):
    """How far from each other those begin that lie in each other's memory."""
    places = [_span(leaf) for leaf in leaves]
    return [
        (n, m, one[0] - other[0])
        for n, one in enumerate(places)
        for m, other in enumerate(places[:n])
        if one[0] < other[1] and other[0] < one[1]
    ]


def _span(value):
    if isinstance(value, numpy.ndarray):
        low, high = numpy.lib.array_utils.byte_bounds(value)
        return (low, high) if value.size else (0, 0)
    steps = sum((size - 1) * step for size, step in zip(value.shape, value.stride()))
    return (value.data_ptr(), value.data_ptr() + (steps + 1) * value.itemsize) if value.numel() else (0, 0)
