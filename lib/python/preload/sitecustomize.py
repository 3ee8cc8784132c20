"""Makes a Python that was started with a program's own command line wait, with modules imported, and fork ranks.

Python imports `sitecustomize` when everything is set up but the program itself. taas-run puts this folder in front of
PYTHONPATH of one interpreter, which stays in here; in each process that is forked from it this module ends as if there
were none (or as the user's own one), and Python goes on to run the program by itself. docs/preload.md has the whole
story.
"""

import sys

try:
    _there = frozenset(sys.modules) - {__name__}
    import taas_preload

    _end = taas_preload.enter(__file__, _there)
except BaseException:
    # Python would report it and go on to run the program here, which must never be.
    import os
    import traceback

    traceback.print_exc()
    os._exit(1)
if _end is not None:
    raise _end
