"""Natural Questions in its simplified format: a line of JSON for each example, 17 GB in all.

The file is read once from beginning to end, one line at a time. What is kept, in an index beside it, is where each line
begins and which windows to use; from then on an example is read when it is its turn.
"""

import contextlib
import fcntl
import gzip
import pathlib
import shutil
import sys
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from examples import BadExample, Example, parse
from windows import Windows, WindowShape, targets, window_starts

HELD_OUT = 20  # one example of so many is for evaluation, with all its windows


class InputError(Exception):
    """Data that cannot be used; the message names the file, and the line where there is one."""


class Lines(Sequence[Example]):
    """The examples of a file. It is opened for each read, so that the object can be sent to other processes."""

    def __init__(self, path: pathlib.Path, offsets: np.ndarray) -> None:
        self.path, self.offsets = path, offsets  # one more offset than lines

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Example:  # type: ignore[override]
        start, end = map(int, self.offsets[index : index + 2])
        with open(self.path, "rb") as file:
            file.seek(start)
            return parse(file.read(end - start))


def open_windows(data: str, cache: str | None, shape: WindowShape, negatives: float) -> tuple[Windows, Windows]:
    """Windows to train on and windows to evaluate on; makes the index where there is none."""
    given = pathlib.Path(data)
    folder = pathlib.Path(cache) if cache else given.parent
    try:
        stamp = given.stat()
        key = zlib.crc32(repr((stamp.st_size, stamp.st_mtime_ns, shape, negatives)).encode())
        index = folder / f"{given.name}.{key:08x}.npz"
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder / f"{given.name}.lock"):
            path = unpacked(given, folder) if given.suffix == ".gz" else given
            if not index.exists():
                write_index(path, index, shape, negatives)
        with np.load(index) as kept:
            examples, rows = Lines(path, kept["offsets"]), kept["rows"]
    except EOFError:
        raise InputError(f"{data}: the compressed file ends too early") from None
    except (OSError, zlib.error) as error:
        raise InputError(f"{data}: {error} (--cache names another folder to write to)") from None
    held_out = rows[:, 0] % HELD_OUT == 0
    return Windows(examples, rows[~held_out], shape), Windows(examples, rows[held_out], shape)


@contextlib.contextmanager
def alone(path: pathlib.Path) -> Iterator[None]:
    """The ranks of a machine come here at once: the first one does the work, the others wait for it."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def unpacked(packed: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A compressed file has no places to begin reading at, so it is unpacked once."""
    whole = folder / packed.stem
    if not whole.exists() or whole.stat().st_mtime_ns < packed.stat().st_mtime_ns:
        print(f"unpacking {packed} to {whole}, once", file=sys.stderr, flush=True)
        part = folder / f"{packed.stem}.part"
        with gzip.open(packed) as source, open(part, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        part.replace(whole)
    return whole


def write_index(path: pathlib.Path, index: pathlib.Path, shape: WindowShape, negatives: float) -> None:
    print(f"reading {path} ({path.stat().st_size:,} bytes) to make {index}, once", file=sys.stderr, flush=True)
    offsets, rows = [0], []
    with open(path, "rb") as file:
        for number, line in enumerate(file):
            try:
                example = parse(line.rstrip(b"\n"))
            except BadExample as error:
                raise InputError(f"{path}:{number + 1}: {error}") from None
            rows += [
                (number, start)
                for start in window_starts(example, shape)
                if is_used(example, number, start, shape, negatives)
            ]
            offsets.append(offsets[-1] + len(line))
    if not any(number % HELD_OUT for number, _ in rows):
        raise InputError(f"{path}: nothing to train on: one example of {HELD_OUT}, from the first on, is held out")
    part = index.with_suffix(".part")
    with open(part, "wb") as target:
        np.savez(target, offsets=np.array(offsets, np.int64), rows=np.array(rows, np.int64))
    part.replace(index)


def is_used(example: Example, number: int, start: int, shape: WindowShape, negatives: float) -> bool:
    """Most windows of a long document have no answer: only a share of these, the same in every run, is trained on."""
    if number % HELD_OUT == 0 or targets(example, start, shape)["type"]:
        return True
    return zlib.crc32(f"{number} {start}".encode()) < negatives * 2**32
