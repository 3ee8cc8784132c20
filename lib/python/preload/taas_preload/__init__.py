"""The preloaded interpreter: from its start to the ranks that come out of it."""

import atexit
import os
import sys


def enter(hook_file: str) -> Exception | None:
    """Returns only in the process of a rank that is ready to run its program.

    What it returns is what importing the user's own `sitecustomize` raised. Whatever goes wrong before is told to
    taas-run and ends the process.
    """
    from . import main_end, output, probe, quick_end, rank, server, site_chain, training, warm
    from .settings import Settings

    settings = Settings.take(os.path.dirname(hook_file))
    if settings.probing:
        probe.go_on(settings)
    held = output.Held()
    atexit.register(quick_end.consider)
    site_end = site_chain.import_users_own()
    ready = warm.prepare(settings)
    quick_end.remember()
    request = server.serve(settings, ready)
    rank.become(request, settings, held)
    main_end.watch()
    training.watch()
    for name in [name for name in sys.modules if name.split(".")[0] == __name__]:
        del sys.modules[name]
    return site_end
