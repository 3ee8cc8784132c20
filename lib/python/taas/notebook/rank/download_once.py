"""`download=True` of torchvision in all ranks: rank 0 downloads, and the others then find the files.

Left alone, eight ranks unpack the same archive in the same place at the same time. A rank whose machine does not see
what rank 0 has downloaded downloads after it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import types
from functools import wraps
from typing import Any, Callable

from ...runtime.rendezvous import NoStore, Store
from .on_import import when_imported

_PATIENCE_SECONDS = 60.0
_DAYS_SECONDS = 7 * 24 * 3600.0


def install() -> None:
    """In a rank. Alone, or without a store through which ranks can agree, everything stays as it is."""
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        when_imported("torchvision.datasets", _patch)


def _patch(datasets: types.ModuleType) -> None:
    for kind in {value for value in vars(datasets).values() if isinstance(value, type)}:
        for name in ("download", "_download"):
            if callable(method := vars(kind).get(name)):
                setattr(kind, name, _in_turn(method))


def _in_turn(download: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(download)
    def download_in_turn(dataset: Any, *arguments: Any, **named: Any) -> Any:
        what = _identity(dataset)
        if os.environ.get("RANK") != "0":
            _wait_for_rank_0(what, dataset)
            return download(dataset, *arguments, **named)
        _say(what, "begun")
        try:
            return download(dataset, *arguments, **named)
        finally:
            _say(what, "ended")

    return download_in_turn


def _identity(dataset: Any) -> str:
    """The same in all ranks: the class, and what of the dataset is set before it downloads."""
    facts = {
        name: str(value) for name, value in vars(dataset).items() if isinstance(value, (str, int, bool, os.PathLike))
    }
    place = os.path.abspath(facts.pop("root", ""))
    text = f"{type(dataset).__module__}.{type(dataset).__qualname__} {place} {sorted(facts.items())}"
    return hashlib.blake2s(text.encode()).hexdigest()


def _say(what: str, state: str) -> None:
    try:
        with Store(_PATIENCE_SECONDS) as store:
            store.set(f"taas/download/{what}/{state}", "")
    except (NoStore, OSError):
        return


def _wait_for_rank_0(what: str, dataset: Any) -> None:
    """Without limit once rank 0 has begun.

    Where it does not, as in a program that lets another rank download, this rank goes on.
    """
    try:
        with Store(_PATIENCE_SECONDS) as store:
            store.get(f"taas/download/{what}/begun")
        with Store(_DAYS_SECONDS) as store:
            store.get(f"taas/download/{what}/ended")
    except TimeoutError:
        print(
            f"taas: rank {os.environ.get('RANK')} downloads {type(dataset).__name__} itself: rank 0 has not begun to "
            f"in {_PATIENCE_SECONDS:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    except (NoStore, OSError):
        return
