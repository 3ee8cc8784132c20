"""--pull: variables of rank 0 come back into the kernel's namespace."""

from __future__ import annotations

import io
from typing import Any

from ..errors import PullError
from .capture import Capture
from .objects import Receiver


def take(message: dict[str, Any] | None, namespace: dict[str, Any], names: list[str], sent: Capture) -> None:
    """Puts what rank 0 has left behind under its names. Within it, classes and functions that were `sent` are the
    kernel's own again. Raises PullError that names what did not come; the others are there then."""
    if message is None:
        raise PullError(f"--pull {','.join(names)}: rank 0 ended without sending them")
    values = io.BytesIO(bytes.fromhex(message["values"]))
    receiver = Receiver(values, message["places"], message["memory"], namespace, sent.values)
    troubles = list(message["troubles"])
    for name in message["names"]:
        try:
            namespace[name] = receiver.load()
        except Exception as error:
            troubles.append(f"--pull {name}: it cannot be loaded here: {type(error).__name__}: {error}")
            break
    if troubles:
        raise PullError("\n".join(troubles))
