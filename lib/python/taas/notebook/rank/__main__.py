"""Runs a cell as this rank's main program."""

from __future__ import annotations

import sys

from taas.notebook.rank.program import main

if __name__ == "__main__":
    main(sys.argv[1])
