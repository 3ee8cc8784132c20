"""PyPI has an unrelated distribution called `taas`, whose files go into a package of the same name as ours."""

from __future__ import annotations

import os
import sys

WAY_OUT = "pip uninstall taas, then pip install --force-reinstall --no-deps <wheel of taas-run>"


class ForeignFiles(ImportError):
    """The package's folder holds files of the distribution `taas`, which taas-run does not come from."""


def refuse_foreign_files(package: str) -> None:
    """Raises ForeignFiles when the distribution `taas` is installed into the folder `package`, in which ours is too.

    Below `python -m taas` the process ends with that line and exit code 2 instead.
    """
    site = os.path.dirname(os.path.abspath(package))
    for metadata in _metadata_folders(site):
        files = [os.path.join(site, name) for name in _recorded(os.path.join(site, metadata, "RECORD"))]
        present = [name for name in files if os.path.exists(name)]
        if present:
            _refuse(
                f"files of another distribution, {_title(metadata)}, lie among those of taas-run: "
                f"{_shortened(present)}; {WAY_OUT}"
            )


def _refuse(line: str) -> None:
    for option, module in zip(sys.orig_argv, sys.orig_argv[1:]):
        if option == "-m" and module.partition(".")[0] == "taas":
            print(f"taas: {line}", file=sys.stderr)
            sys.exit(2)
    raise ForeignFiles(line)


def _metadata_folders(site: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(site) if name.startswith("taas-") and name.endswith(".dist-info"))
    except OSError:  # inside of an archive: nothing can have been installed into it
        return []


def _title(metadata: str) -> str:
    return metadata.removesuffix(".dist-info").replace("-", " ")


def _recorded(record: str) -> list[str]:
    """The package's files that a RECORD lists; __init__.py, which may be ours, comes last."""
    try:
        with open(record, encoding="utf-8") as lines:
            names = [line.split(",")[0] for line in lines]
    except OSError:
        names = ["taas/__init__.py"]  # uninstalled by halves
    files = [name for name in names if name.startswith("taas/") and not name.endswith(".pyc")]
    return sorted(files, key=lambda name: (os.path.basename(name) == "__init__.py", name))


def _shortened(files: list[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
