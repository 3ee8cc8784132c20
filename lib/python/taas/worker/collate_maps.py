"""What torch's default_collate does with types of other libraries: some register theirs only when they are called."""

from __future__ import annotations

from typing import Any

from torch.utils.data._utils.collate import default_collate_fn_map


class CollateMaps:
    """One for each recipe: a data worker serves several loaders, and what one's code registers is for that one only."""

    def __init__(self) -> None:
        self._first = dict(default_collate_fn_map)
        self._kept: dict[str, dict[Any, Any]] = {}
        self._current = ""

    def enter(self, digest: str) -> None:
        """The next batches are those of this recipe."""
        if digest == self._current:
            return
        self._kept[self._current] = dict(default_collate_fn_map)
        self._current = digest
        default_collate_fn_map.clear()
        default_collate_fn_map.update(self._kept.pop(digest, self._first))

    def forget(self, digest: str) -> None:
        """The recipe is not loaded any more."""
        self._kept.pop(digest, None)
