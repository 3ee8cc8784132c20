"""Has torch tell TrainingFacts what it does.

What torch calls once on the way is replaced until its first call; it has returned before anything of the program's can
fail, so that no frame of this file is in a traceback. Where torch has no function of that name, that fact stays
unknown.
"""

import functools
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .training_facts import TrainingFacts


def watch(facts: TrainingFacts) -> None:
    """Torch is imported already."""
    optimizer = getattr(sys.modules.get("torch.optim.optimizer"), "Optimizer", None)
    parallel = sys.modules.get("torch.nn.parallel.data_parallel")
    groups = sys.modules.get("torch.distributed.distributed_c10d")
    _at_first_call(optimizer, "_patch_step_function", facts.made_optimizer)
    _at_first_call(
        sys.modules.get("torch.autograd"), "_tensor_or_tensors_to_tuple", lambda *_: facts.computed_gradients()
    )
    _at_first_call(parallel, "_check_balance", lambda devices: facts.used_data_parallel(list(devices)))
    _watch_groups(groups, facts)
    _watch_files(sys.modules.get("torch.serialization"), facts)


def _at_first_call(owner: object, name: str, tell: Callable[..., None]) -> bool:
    original = getattr(owner, name, None)
    if original is None:
        return False

    @functools.wraps(original)
    def first(*arguments: Any, **named: Any) -> Any:
        if getattr(owner, name) is first:
            setattr(owner, name, original)
        _try(tell, *arguments)
        return original(*arguments, **named)

    setattr(owner, name, first)
    return True


def _watch_groups(groups: ModuleType | None, facts: TrainingFacts) -> None:
    """Until there is one of several ranks."""
    original = getattr(groups, "_update_default_pg", None)
    if groups is None or original is None:
        return facts.joined()

    @functools.wraps(original)
    def change(group: Any) -> None:
        original(group)
        _try(look, group)

    def look(group: Any) -> None:
        if group is None or group.size() == 1:
            return
        facts.joined()
        if groups._update_default_pg is change:
            groups._update_default_pg = original

    groups._update_default_pg = change  # type: ignore[attr-defined]


def _watch_files(serialization: ModuleType | None, facts: TrainingFacts) -> None:
    """Each torch.save enters and leaves one of these, in microseconds beside what it writes."""
    for kind, named in (
        ("_open_zipfile_writer_file", lambda file: file.name),
        ("_open_zipfile_writer_buffer", lambda file: getattr(file.buffer, "name", None)),
    ):
        opener = getattr(serialization, kind, None)
        if opener is not None:
            _watch_opener(opener, named, facts)


def _watch_opener(opener: Any, named: Callable[[Any], object], facts: TrainingFacts) -> None:
    enter, leave = opener.__enter__, opener.__exit__

    @functools.wraps(enter)
    def begin(file: Any) -> Any:
        file.taas_began = time.monotonic_ns()
        return enter(file)

    @functools.wraps(leave)
    def end(file: Any, *error: Any) -> Any:
        result = leave(file, *error)
        _try(lambda: facts.saved(named(file), file.taas_began))
        return result

    opener.__enter__, opener.__exit__ = begin, end


def _try(tell: Callable[..., None], *arguments: Any) -> None:
    try:
        tell(*arguments)
    except Exception:
        return  # a hint less
