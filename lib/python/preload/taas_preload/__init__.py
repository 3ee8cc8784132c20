"""The preloaded interpreter: from its start to the ranks that come out of it."""

import atexit
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .session import Session
    from .settings import Settings


def enter(hook_file: str) -> Exception | None:
    """Returns only in the process of a rank that is ready to run its program, with what importing the user's own `sitecustomize`
    raised. Whatever goes wrong before is told to taas-run and ends the process."""
    from . import bindings, main_end, output, probe, quick_end, rank, server, site_chain, training, warm
    from .settings import Settings
    settings = Settings.take(os.path.dirname(hook_file))
    if settings.probing:
        probe.go_on(settings)
    held = output.Held()
    atexit.register(quick_end.consider)
    atexit.register(bindings.let_go)
    site_end = site_chain.import_users_own()
    early, given = frozenset(sys.modules), dict(os.environb)  # importing torch._dynamo sets a variable
    ready, asked = warm.prepare(settings)
    session = _make_session(settings, early, given, asked) if settings.is_session else None
    bindings.remember()
    quick_end.remember()
    if session:
        request = session.serve(ready)
        rank.become(request, session.settings, held)
        session.use_program(request)
    else:
        rank.become(server.serve(settings, ready), settings, held)
    main_end.watch()
    training.watch()
    for name in [name for name in sys.modules if name.split(".")[0] == __name__]:
        del sys.modules[name]
    return site_end


def _make_session(settings: "Settings", early: frozenset[str], given: dict[bytes, bytes], asked: set[str]) -> "Session":
    from .session import Session
    from .settings import forget
    forget(settings.folder)
    return Session(settings, early, given, asked)
