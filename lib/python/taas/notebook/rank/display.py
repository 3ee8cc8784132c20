"""display() and its relatives in a rank: what they are given goes to the kernel as MIME bundles."""

from __future__ import annotations

import base64
import builtins
import sys
import types
import uuid
from typing import Any, Callable

from .connection import Connection
from .on_import import when_imported
from .picture import picture

_METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}
_connection: Connection | None = None
_at_end: list[Callable[[], None]] = []


def install(connection: Connection) -> None:
    """From now on display() is known everywhere.

    IPython.display's functions are these, if the cell imports them.
    """
    global _connection
    _connection = connection
    builtins.display = display  # type: ignore[attr-defined]
    for name, patch in _PATCHES.items():
        when_imported(name, patch)


def at_end(call: Callable[[], None]) -> None:
    """`call` is called when the cell has ended."""
    _at_end.append(call)


def finish() -> None:
    """The cell has ended: open plots are shown."""
    for call in _at_end:
        call()


def bundle_of(value: Any, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The value as MIME data and metadata, by the methods that IPython asks as well."""
    if "matplotlib.figure" in sys.modules and isinstance(value, sys.modules["matplotlib.figure"].Figure):
        return {"image/png": picture(value), "text/plain": repr(value)}, {}
    data: dict[str, Any] = {"text/plain": repr(value)}
    metadata: dict[str, Any] = {}
    if not isinstance(value, type) and (method := getattr(value, "_repr_mimebundle_", None)):
        made = method(include=include, exclude=exclude) or {}
        made, about = made if isinstance(made, tuple) else (made, {})
        data.update(made)
        metadata.update(about)
    for name, mime in () if isinstance(value, type) else _METHODS.items():
        if mime not in data and callable(method := getattr(value, name, None)):
            _add(data, metadata, mime, method())
    data.pop("application/vnd.jupyter.widget-view+json", None)  # no widgets without a kernel of their own
    return {mime: _text(part) for mime, part in data.items()}, metadata


def _add(data: dict[str, Any], metadata: dict[str, Any], mime: str, made: Any) -> None:
    made, about = made if isinstance(made, tuple) else (made, None)
    if made is not None:
        data[mime] = made
        if about:
            metadata[mime] = about


def _text(part: Any) -> Any:
    return base64.b64encode(part).decode() if isinstance(part, bytes) else part


class DisplayHandle:
    """What display(…, display_id=True) returns."""

    def __init__(self, display_id: str | None = None) -> None:
        self.display_id = display_id or uuid.uuid4().hex

    def display(self, value: Any, **options: Any) -> None:
        """Shows another output with this identity."""
        display(value, display_id=self.display_id, **options)

    def update(self, value: Any, **options: Any) -> None:
        """Replaces what is shown."""
        display(value, display_id=self.display_id, update=True, **options)


def display(
    *values: Any,
    include: Any = None,
    exclude: Any = None,
    metadata: Any = None,
    transient: Any = None,
    display_id: Any = None,
    raw: bool = False,
    clear: bool = False,
    update: bool = False,
    **_: Any,
) -> DisplayHandle | None:
    """As in IPython. Where no kernel can be reached, it prints."""
    handle = DisplayHandle(None if display_id is True else display_id) if display_id else None
    if clear:
        clear_output(wait=True)
    for value in values:
        data, about = (value, {}) if raw else bundle_of(value, include, exclude)
        publish_display_data(
            data,
            {**about, **(metadata or {})},
            update=update,
            transient={**(transient or {}), **({"display_id": handle.display_id} if handle else {})},
        )
    return handle


def update_display(value: Any, *, display_id: str, **options: Any) -> None:
    """As in IPython."""
    display(value, display_id=display_id, update=True, **options)


def publish_display_data(
    data: dict[str, Any], metadata: Any = None, *_: Any, transient: Any = None, update: bool = False, **__: Any
) -> None:
    """As in IPython."""
    if not _connection or not _connection.send_in_place(
        "display", data=data, metadata=metadata or {}, transient=transient or {}, update=update
    ):
        print(data.get("text/plain", ""), flush=True)


def clear_output(wait: bool = False) -> None:
    """As in IPython."""
    if _connection:
        _connection.send_in_place("clear", wait=wait)


def result(value: Any) -> None:
    """The value of the cell's last expression."""
    data, metadata = bundle_of(value)
    if not _connection or not _connection.send_in_place("result", data=data, metadata=metadata):
        print(data["text/plain"], flush=True)


def _patch_ipython(module: types.ModuleType) -> None:
    for replacement in (display, update_display, publish_display_data, clear_output, DisplayHandle):
        setattr(module, replacement.__name__, replacement)


def _patch_tqdm(module: types.ModuleType) -> None:
    """Bars of text: widgets need a kernel behind them."""
    from tqdm.std import tqdm, trange

    module.tqdm = module.tqdm_notebook = tqdm  # type: ignore[attr-defined]
    module.trange = module.tnrange = trange  # type: ignore[attr-defined]


_PATCHES = {"IPython.core.display_functions": _patch_ipython, "tqdm.notebook": _patch_tqdm}
