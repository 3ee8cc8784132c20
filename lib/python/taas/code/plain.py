"""Values that their text tells whole."""

from __future__ import annotations

from typing import Any

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_MOST_ITEMS = 2000


def is_plain(value: Any, depth: int = 3) -> bool:
    """Numbers, text, and containers of them that are not deep: ast.literal_eval() makes them of what repr() says."""
    if type(value) in _PLAIN:
        return True
    if not depth or type(value) not in (list, tuple, dict) or len(value) > _MOST_ITEMS:
        return False
    parts = [*value, *value.values()] if type(value) is dict else value
    return all(is_plain(part, depth - 1) for part in parts)
