"""`python -m taas …` is `taas-run …`, with this interpreter for Python programs."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Becomes taas-run.

    Ends with exit code 2 and one line when there is none, or when other files are among the package's.
    """
    from .foreign import refuse_foreign_files
    from .launcher import NoLauncher, find_launcher

    refuse_foreign_files(os.path.dirname(__file__))  # here too: the other distribution may have replaced __init__.py
    try:
        program = find_launcher()
    except NoLauncher as error:
        print(f"taas: {error}", file=sys.stderr)
        sys.exit(2)
    os.environ.setdefault("PYTHON_EXEC", sys.executable)
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
