"""Changes modules when they are imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any, Callable

_patches: dict[str, Callable[[types.ModuleType], None]] = {}


def when_imported(name: str, patch: Callable[[types.ModuleType], None]) -> None:
    """`patch` is called with the module once it is there, which may be now."""
    if name in sys.modules:
        return patch(sys.modules[name])
    if not _patches:
        sys.meta_path.insert(0, _Patching())
    _patches[name] = patch


class _Patching(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        patch = _patches.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if patch else None
        if patch is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            patch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
