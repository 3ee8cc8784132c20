"""Classes that nanobind has made, of modules that were preloaded.

nanobind, which Triton is made with, complains of objects that are left when Python has ended: of what the default values of its functions
are, say. The collector would have found these, but it leaves alone what was there before ranks were forked (gc.freeze in warm).
"""

import contextlib

_preloaded: list[type] = []


def remember() -> None:
    """In the preloaded interpreter, when all is imported."""
    waiting = [cls for cls in object.__subclasses__() if type(cls).__module__ == "nanobind"]
    while waiting:
        _preloaded.append(waiting.pop())
        waiting += type.__subclasses__(_preloaded[-1])


def let_go() -> None:
    """In a rank, when its last function at exit has run."""
    for cls in _preloaded:
        for name in list(vars(cls)):
            with contextlib.suppress(AttributeError, TypeError):
                delattr(cls, name)
    _preloaded.clear()
