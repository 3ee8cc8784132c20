#!/usr/bin/env python3
"""Writes to the output folder: FOLDER, then a JSON object RANK → NAME → what is in the file.

A text is the content, a number is how many bytes it has (see content()), {"to": TEXT} is a symbolic link. Then
FOLDER/wrote-RANK appears. With a further argument "wait" it lives until FOLDER/finish is there.
"""

import json
import os
import pathlib
import sys
import time


def content(size: int) -> bytes:
    return bytes(range(251)) * (size // 251) + bytes(size % 251)


def write(path: pathlib.Path, what):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(what, dict):
        path.symlink_to(what["to"])
    elif isinstance(what, int):
        path.write_bytes(content(what))
    else:
        path.write_text(what)


if __name__ == "__main__":
    folder, rank = pathlib.Path(sys.argv[1]), os.environ["RANK"]
    for name, what in json.loads(sys.argv[2]).get(rank, {}).items():
        write(pathlib.Path(os.environ["TAAS_OUTPUT_DIR"]) / name, what)
    (folder / f"wrote-{rank}").touch()
    while "wait" in sys.argv and not (folder / "finish").exists():
        time.sleep(0.02)
    if "fail" in sys.argv and rank == "0":
        sys.exit(3)
