"""The native module, or what is done without it."""

from __future__ import annotations

import hashlib
from typing import Any

module: Any = None
try:
    from .. import _native  # type: ignore[attr-defined]  # where it is built

    module = _native
except ImportError as error:  # not built: registered loaders are plain
    why_absent = str(error)


def addresses(workers: list[dict[str, Any]]) -> list[Any]:
    """A plan's workers as the client takes them."""
    return [
        module.WorkerAddress(
            worker.get("name", ""), worker.get("address", ""), worker.get("port", 0), worker.get("unix", "")
        )
        for worker in workers
    ]


def digest(data: Any) -> int:
    """64 bits over `data`, the same on all machines of a run."""
    if module is not None:
        return module.digest(data)
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
