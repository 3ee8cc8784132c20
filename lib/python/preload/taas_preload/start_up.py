"""Code that runs when Python starts, before the program.

It may look at RANK, open a file for each process or set variables: what is not known to do the same in every process
is left to run in each rank, which then starts a Python of its own.
"""

import os
import re
import site
import sys
from importlib.machinery import PathFinder

from .settings import Settings

_NAME = "sitecustomize"
_HARMLESS = (  # lines of .pth files
    # setuptools, and packages whose sources can be edited (by setuptools, hatchling, scikit-build, meson)
    r"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os\.environ\.get\(var, '\w+'\) == 'local'; "
    r"enabled and __import__\('_distutils_hack'\)(\.add_shim\(\))?;?",
    r"import (__editable___\w+_finder); ?\1\.install\(\)",
    r"import (_virtualenv|_editable_impl_\w+|_\w+_editable(_loader)?)",
    # packages that share a namespace
    r"import sys, ?types, ?os; ?(has_mfs = .*; ?)?p = os\.path\.join\(sys\._getframe\(1\)\.f_locals\['sitedir'\], .*",
)
_BY_VARIABLE = {
    "COVERAGE_PROCESS_": r".*coverage.*process_startup.*",
    "COV_CORE_": r"import os, sys; ?exec\('if .COV_CORE_SOURCE. in os\.environ.*",
    "AUTOWRAPT_": r"import autowrapt.*",
    "BETTER_EXCEPTIONS": r".*better_exceptions.*",
    "COLOREDLOGS_AUTO_INSTALL": r".*coloredlogs.*",
    "PYTHONMANHOLE": r".*manhole.*",
}
"""Lines that do nothing where no variable begins so."""
_OVERLAY = re.compile(r"import site; ?site\.addsitedir\(['\"](.*)['\"]\)")  # uv run --with
_UBUNTUS = {"__doc__", "apport_python_hook", "install", "ImportError"}
"""Names in a module that reports crashes of Ubuntu's own packages, and looks at nothing."""


def import_users_own() -> Exception | None:
    """The user's own `sitecustomize`, whose place this hook has taken, where there is one.

    Returns what Python's own attempt would have raised, to be raised in each rank.
    """
    sys.modules.pop(_NAME, None)
    try:
        __import__(_NAME)
    except Exception as error:
        return error.with_traceback(None)
    return None


def why_not_alike(settings: Settings) -> str | None:
    """What makes this process start otherwise than a rank would, for the user."""
    if os.path.realpath("/proc/self/exe") != os.path.realpath(settings.interpreter):
        return f"{settings.interpreter} is not Python itself but starts it"  # and may prepare each process for it
    if sys.flags.verbose or sys._xoptions.get("importtime") or os.environ.get("PYTHONPROFILEIMPORTTIME"):
        return "Python is to tell what it imports"
    sys.modules.pop(_NAME, None)
    for name in (_NAME, "usercustomize") if site.ENABLE_USER_SITE else (_NAME,):
        spec = PathFinder.find_spec(name)
        if spec is not None and not _does_nothing(spec.origin):
            return f"{spec.origin} runs code in every Python that starts"
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    found = next(filter(None, map(_find_code, folders)), None)
    return f"{found} runs code in every Python that starts" if found else None


def _does_nothing(path: str | None) -> bool:
    try:
        with open(path or "", "rb") as file:
            code = compile(file.read(), "", "exec")
    except (OSError, SyntaxError, ValueError):
        return False
    return set(code.co_names) <= _UBUNTUS and not any(hasattr(constant, "co_code") for constant in code.co_consts)


def _find_code(folder: str) -> str | None:
    """A .pth file there with a line that is not known to be harmless."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".pth") and not name.startswith("."))
    except OSError:
        return None
    for name in names:
        path = os.path.join(folder, name)
        try:
            with open(path, encoding="utf-8-sig", errors="replace") as file:
                lines = [line.rstrip() for line in file if line.startswith(("import ", "import\t"))]
        except OSError:
            continue
        for line in lines:
            overlay = _OVERLAY.fullmatch(line)
            if overlay and (found := _find_code(overlay.group(1))):
                return found
            if not overlay and not _is_harmless(line):
                return path
    return None


def _is_harmless(line: str) -> bool:
    for beginning, pattern in _BY_VARIABLE.items():
        if re.fullmatch(pattern, line):
            return not any(name.startswith(beginning) for name in os.environ)
    return any(re.fullmatch(pattern, line) for pattern in _HARMLESS)
