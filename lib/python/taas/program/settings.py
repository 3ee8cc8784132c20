"""What a program sets and a dataset may depend on: read in a rank, written in its data workers."""

from __future__ import annotations

import importlib
import locale
import multiprocessing
import os
import re
import sys
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Iterator

import numpy
import torch


@dataclass(frozen=True)
class Setting:
    """One of them.

    `read` gives what JSON can hold, or None where this process has no such thing; `write` takes that.
    """

    read: Callable[[], Any]
    write: Callable[[Any], object]


def _attribute(module: str, name: str) -> Setting:
    """A module's attribute. Read where the module is in use, written where it can be imported."""
    return Setting(
        lambda: getattr(sys.modules.get(module), name, None),
        lambda value: setattr(importlib.import_module(module), name, value),
    )


def _called(module: str, read: str, write: str) -> Setting:
    """What two functions of a module read and write.

    Read where the module is in use, written where it can be imported.
    """
    return Setting(
        lambda: getattr(sys.modules.get(module), read, lambda: None)(),
        lambda value: getattr(importlib.import_module(module), write)(value),
    )


def _pandas_options() -> dict[str, Any] | None:
    """Those that have plain values; None while nobody uses pandas.

    pandas.get_option warns of each that is deprecated.
    """
    values = getattr(sys.modules.get("pandas._config.config"), "_global_config", None)
    return None if values is None else dict(_flat(values, ""))


def _flat(values: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, (bool, int, float, str)):
            yield prefix + name, value


def _set_pandas_options(wanted: dict[str, Any]) -> None:
    import pandas

    known = _pandas_options() or {}
    for name in wanted.keys() & known.keys():
        if wanted[name] != known[name]:
            pandas.set_option(name, wanted[name])


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:  # somebody has removed it
        return None


def _flushes_denormals() -> bool:
    return bool(torch.tensor(1e-310, dtype=torch.float64).mul(1.0) == 0)


def _torch_print_options() -> dict[str, Any]:
    return dict(vars(torch._tensor_str.PRINT_OPTS))


def _numpy_print_options() -> dict[str, Any]:
    return {
        name: value for name, value in numpy.get_printoptions().items() if isinstance(value, (bool, int, float, str))
    }


def _set_start_method(value: str) -> None:
    multiprocessing.set_start_method(value, force=True)


def _pattern(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else [value.pattern, value.flags]


def _compiled(value: Any) -> Any:
    return re.compile(*value) if isinstance(value, list) else value


def _warning_filters() -> list[Any]:
    filters: list[Any] = list(warnings.filters)
    return [
        [action, _pattern(message), category.__module__, category.__qualname__, _pattern(module), line]
        for action, message, category, module, line in filters
    ]


def _set_warning_filters(wanted: list[Any]) -> None:
    """Categories of modules that are not in use here cannot be warned of."""
    known = [(filter, getattr(sys.modules.get(filter[2]), filter[3], None)) for filter in wanted]
    filters: Any = warnings.filters  # a list, whatever its stub says
    filters[:] = [
        (action, _compiled(message), category, _compiled(module), line)
        for (action, message, _, _, module, line), category in known
        if isinstance(category, type)
    ]
    getattr(warnings, "_filters_mutated", getattr(warnings, "_filters_mutated_lock_held", lambda: None))()


def _decimal_context() -> dict[str, Any] | None:
    """None while nobody uses decimal numbers."""
    decimal = sys.modules.get("decimal")
    if decimal is None:
        return None
    context = decimal.getcontext()
    plain = {name: getattr(context, name) for name in ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")}
    return {**plain, "traps": sorted(signal.__name__ for signal, is_trapped in context.traps.items() if is_trapped)}


def _set_decimal_context(wanted: dict[str, Any]) -> None:
    import decimal

    decimal.setcontext(decimal.Context(**{**wanted, "traps": [getattr(decimal, name) for name in wanted["traps"]]}))


def _umask() -> int:
    """As the kernel says it: os.umask() tells it only by setting another one, which other threads would see."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))


def _logging() -> dict[str, Any] | None:
    """Levels by logger, and how the root logger writes to stderr; None while nobody uses it."""
    logging = sys.modules.get("logging")
    if logging is None:
        return None
    known = {"root": logging.root, **logging.root.manager.loggerDict}
    levels = {name: logger.level for name, logger in known.items() if getattr(logger, "level", 0)}
    formatters = [handler.formatter for handler in logging.root.handlers if type(handler) is logging.StreamHandler]
    written = [
        [each._fmt, each.datefmt, type(each._style).default_format[:1]]
        for each in formatters[:1]
        if type(each) is logging.Formatter
    ]
    return {"levels": levels, "written": written}


_levels_that_were_set: set[str] = set()


def _set_logging(wanted: dict[str, Any]) -> None:
    import logging

    for name in _levels_that_were_set - wanted["levels"].keys():  # by another rank's program
        logging.getLogger(name).setLevel(logging.NOTSET)
    _levels_that_were_set.update(wanted["levels"])
    for name, level in wanted["levels"].items():
        (logging.root if name == "root" else logging.getLogger(name)).setLevel(level)
    for form, date, style in wanted["written"]:
        if not logging.root.handlers:
            logging.basicConfig(format=form, datefmt=date, style=style, level=logging.root.level)


def _named_dtype(name: str) -> torch.dtype:
    return getattr(torch, name.removeprefix("torch."))


SETTINGS: dict[str, Setting] = {
    "the working directory": Setting(_working_directory, os.chdir),
    "sys.argv": Setting(lambda: list(sys.argv), lambda value: sys.argv.__setitem__(slice(None), value)),
    "the recursion limit": Setting(sys.getrecursionlimit, sys.setrecursionlimit),
    "the umask": Setting(_umask, os.umask),
    "logging": Setting(_logging, _set_logging),
    "the locale": Setting(
        lambda: locale.setlocale(locale.LC_ALL), lambda value: locale.setlocale(locale.LC_ALL, value)
    ),
    "the start method of multiprocessing": Setting(
        lambda: multiprocessing.get_start_method(allow_none=True), _set_start_method
    ),
    "the decimal context": Setting(_decimal_context, _set_decimal_context),
    "the warning filters": Setting(_warning_filters, _set_warning_filters),
    "torch.set_default_dtype": Setting(
        lambda: str(torch.get_default_dtype()), lambda value: torch.set_default_dtype(_named_dtype(value))
    ),
    "torch.set_grad_enabled": Setting(torch.is_grad_enabled, torch.set_grad_enabled),
    "torch.use_deterministic_algorithms": Setting(
        lambda: [torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()],
        lambda value: torch._C._set_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    "torch.utils.deterministic.fill_uninitialized_memory": Setting(
        torch._C._get_deterministic_fill_uninitialized_memory, torch._C._set_deterministic_fill_uninitialized_memory
    ),
    "torch.backends.cudnn.deterministic": Setting(torch._C._get_cudnn_deterministic, torch._C._set_cudnn_deterministic),
    "torch.backends.cudnn.benchmark": Setting(torch._C._get_cudnn_benchmark, torch._C._set_cudnn_benchmark),
    "torch.set_float32_matmul_precision": Setting(
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    ),
    "torch.set_flush_denormal": Setting(_flushes_denormals, torch.set_flush_denormal),
    "torch.backends.mkldnn.enabled": Setting(torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled),
    "torch.set_printoptions": Setting(
        _torch_print_options, lambda value: vars(torch._tensor_str.PRINT_OPTS).update(value)
    ),
    "numpy.seterr": Setting(numpy.geterr, lambda value: numpy.seterr(**value)),
    "numpy.set_printoptions": Setting(_numpy_print_options, lambda value: numpy.set_printoptions(**value)),
    "PIL.ImageFile.LOAD_TRUNCATED_IMAGES": _attribute("PIL.ImageFile", "LOAD_TRUNCATED_IMAGES"),
    "PIL.Image.MAX_IMAGE_PIXELS": _attribute("PIL.Image", "MAX_IMAGE_PIXELS"),
    "pandas.set_option": Setting(_pandas_options, _set_pandas_options),
    "cv2.setUseOptimized": _called("cv2", "useOptimized", "setUseOptimized"),
    "torchvision.set_image_backend": _called("torchvision", "get_image_backend", "set_image_backend"),
    "monai.data.set_track_meta": _called("monai.data.meta_obj", "get_track_meta", "set_track_meta"),
}
"""By the names that people know them by, in the order in which they are written."""


def read_all() -> dict[str, Any]:
    """This process' settings, without those that it does not have."""
    return {name: value for name, setting in SETTINGS.items() if (value := setting.read()) is not None}


def write_all(wanted: dict[str, Any]) -> dict[str, Exception]:
    """Sets what differs. Returns what could not be set, with the reason."""
    return {name: error for name, value in wanted.items() if (error := _written(name, value)) is not None}


def _written(name: str, value: Any) -> Exception | None:
    try:
        if SETTINGS[name].read() != value:
            SETTINGS[name].write(value)
    except Exception as error:
        return error
    return None
