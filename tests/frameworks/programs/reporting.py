"""What a rank tells the test: one file of JSON."""

import hashlib
import json
import os
import pathlib


def report(number: int, /, **values):
    """Writes the report of rank `number` whole, under its final name."""
    folder = pathlib.Path(os.environ["REPORTS"])
    unfinished = folder.parent / f".report-{number}"
    unfinished.write_text(json.dumps(values))
    unfinished.rename(folder / f"{number}.json")


def digest(tensors) -> str:
    """The bytes of tensors, as one short text."""
    hashed = hashlib.sha256()
    for tensor in tensors:
        hashed.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()[:16]
