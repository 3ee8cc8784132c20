"""Objects as bytes: by reference where the other process can import them, by value (cloudpickle) where it cannot."""

from __future__ import annotations

import io
import pickle
from typing import Any, Callable

try:
    import cloudpickle
except ImportError:  # pragma: no cover
    cloudpickle = None


class Unpicklable(Exception):
    """Says which part of an object cannot be pickled."""


def by_value(what: Any) -> bytes:
    """For code and datasets: what `__main__` defines, lambdas and local functions go along. Raises Unpicklable."""
    dump = cloudpickle.dumps if cloudpickle else pickle.dumps
    try:
        return dump(what, protocol=5)
    except Exception as error:
        hint = "" if cloudpickle else "; with `pip install cloudpickle` lambdas and classes of the script itself can be sent"
        raise Unpicklable(f"{first_line(error)}{hint}") from error


def write_by_value(what: Any, file: Any) -> None:
    """The same bytes, into a file."""
    kind = cloudpickle.Pickler if cloudpickle else pickle.Pickler
    try:
        kind(file, protocol=5).dump(what)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise Unpicklable(first_line(error)) from error


def by_reference(what: Any) -> bytes:
    """For objects inside batches: a class that the training program has itself stays that class. Raises Unpicklable."""
    try:
        return pickle.dumps(what, protocol=5)
    except Exception:
        return by_value(what)


def classes_by_value() -> list[type]:
    """The classes that came by value and are still in use: pickles of the same run may name them."""
    return list(getattr(getattr(cloudpickle, "cloudpickle", None), "_DYNAMIC_CLASS_TRACKER_BY_CLASS", ()))


def culprit(what: Any, name: str, dump: Callable[[Any], bytes] = by_value, depth: int = 4) -> str:
    """Which attribute of `what` it is that cannot be pickled: "dataset.file"."""
    parts = vars(what) if hasattr(what, "__dict__") and not isinstance(what, type) else {}
    for key, part in parts.items() if depth else ():
        try:
            dump(part)
        except Exception:
            return culprit(part, f"{name}.{key}", dump, depth - 1)
    return f"{name} ({type(what).__module__}.{type(what).__qualname__})"


def first_line(error: BaseException) -> str:
    """What an exception says, or else what it is."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def load(data: Any) -> Any:
    """The object. Only for bytes from a process of the same run."""
    return pickle.load(io.BytesIO(data))
