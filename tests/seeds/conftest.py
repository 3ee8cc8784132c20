"""The fixtures of two other suites: `runner` of tests/frameworks, and `kernel` and `project` of tests/notebook."""

import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))


def _fixtures_of(suite: str):
    """The conftest of another suite; under its own name it would be this one."""
    spec = importlib.util.spec_from_file_location(f"{suite}_fixtures", HERE.parent / suite / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


frameworks, notebook = _fixtures_of("frameworks"), _fixtures_of("notebook")
need, runner = frameworks.need, frameworks.runner
shared_kernel, kernel, project = notebook.shared_kernel, notebook.kernel, notebook.project
