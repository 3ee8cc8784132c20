"""The preloaded interpreter: from its start to the ranks that come out of it."""

import sys

from .stash import Recorder, Stash
from .traces import Surface


def enter(hook_file: str, modules: "frozenset[str]") -> "Exception | None":
    """Returns only in the process of a rank that is ready to run its program. `modules` were there before this package.

    What it returns is what importing the user's own `sitecustomize` raised. Whatever goes wrong before is told to
    taas-run and ends the process.
    """
    stash = Stash()
    recorder = Recorder(stash)
    with recorder:
        import os

        from . import libraries, linux, main_end, output, probe, quick_end, rank, server, start_folder, start_up
        from . import training, warm
        from .settings import Settings

        settings = Settings.take(os.path.dirname(hook_file))
        if settings.probing:
            probe.go_on(settings)
        held = output.Held()
        why_not = start_up.why_not_alike(settings)
        stash.install()
        stash.hide(Surface(modules))
        site_end = start_up.import_users_own() if why_not is None else None
        surface = Surface(frozenset(sys.modules))
        recorder.traces.watch_output(held.take)
        ready = warm.prepare(settings, recorder, why_not)
    warm.freeze()
    held.end()
    stash.hide(surface)
    quick_end.remember(stash, settings.modules)
    training.watch(stash)
    variables = libraries.Variables(stash, settings)
    stash.plan(settings.modules, start_folder.find(sys.orig_argv[settings.options :]))
    linux.keep_for_ever(stash)  # what the program does not import would miss the functions at exit that it relies on
    request = server.serve(settings, ready)
    rank.become(request, settings, held, stash)
    variables.remember()
    main_end.watch(stash)
    return site_end
