"""Digits in the files that torchvision's MNIST reads: drawn in seven segments, with noise around them."""

import pathlib

import numpy

_SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]
_BOXES = {
    "a": (4, 6, 8, 20),
    "b": (4, 14, 18, 20),
    "c": (14, 24, 18, 20),
    "d": (22, 24, 8, 20),
    "e": (14, 24, 8, 10),
    "f": (4, 14, 8, 10),
    "g": (13, 15, 8, 20),
}


def write(folder: pathlib.Path, train: int, test: int):
    """So many digits of each kind below `folder`."""
    images, labels = _drawn(train + test)
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, part in (("train", slice(0, train)), ("t10k", slice(train, train + test))):
        _write(raw / f"{name}-images-idx3-ubyte", images[part])
        _write(raw / f"{name}-labels-idx1-ubyte", labels[part])


def _drawn(count):
    random = numpy.random.default_rng(1)
    labels = random.integers(0, 10, count, dtype=numpy.uint8)
    images = random.integers(0, 40, (count, 28, 28), dtype=numpy.uint8)
    for image, label in zip(images, labels):
        down, right = random.integers(-3, 4, 2)
        for segment in _SEGMENTS[label]:
            top, bottom, left, end = _BOXES[segment]
            image[top + down : bottom + down, left + right : end + right] = 230
    return images, labels


def _write(path, values):
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    path.write_bytes(bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes())
